// Dates as Python's strftime writes them, in English whatever the machine speaks. Chat templates ask for the day.

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
];

export function strftime(date: Date, format: string): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const day = DAYS[date.getDay()]!;
  const month = MONTHS[date.getMonth()]!;
  const hour = date.getHours();
  const startOfYear = Date.UTC(date.getFullYear(), 0, 1);
  const dayOfYear =
    (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - startOfYear) / 86_400_000 + 1;
  const parts: Readonly<Record<string, string>> = {
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    e: String(date.getDate()).padStart(2, ' '),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    j: String(dayOfYear).padStart(3, '0'),
    H: two(hour),
    I: two(hour % 12 || 12),
    p: hour < 12 ? 'AM' : 'PM',
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    F: `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
    T: `${two(hour)}:${two(date.getMinutes())}:${two(date.getSeconds())}`,
    '%': '%',
  };
  return format.replace(/%(-?)([A-Za-z%])/g, (whole, dash: string, letter: string) => {
    const part = parts[letter];
    if (part === undefined) return whole;
    return dash === '' ? part : part.replace(/^[0 ]+(?=.)/, '');
  });
}
