// The string formats of JSON schema as regular expressions, for the JSON schema grammar. Each is a subset of its
// format that is always valid, so that what comes out can be parsed by those who asked for it.

const LEAP_YEAR = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
const LONG_MONTH = '(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])';
const SHORT_MONTH = '(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)';
const FEBRUARY = '02-(?:0[1-9]|1[0-9]|2[0-8])';
const DATE = `(?:[0-9]{4}-(?:${LONG_MONTH}|${SHORT_MONTH}|${FEBRUARY})|${LEAP_YEAR}-02-29)`;
const TIME =
  '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])';
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,20}[A-Za-z0-9])?';
const HOSTNAME = `${LABEL}(?:\\.${LABEL}){0,8}`;
const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const HEX4 = '[0-9a-fA-F]{1,4}';
/** Eight groups, or fewer with one gap. */
const IPV6 = [
  `(?:${HEX4}:){7}${HEX4}`,
  ...[1, 2, 3, 4, 5, 6].map((count) => `(?:${HEX4}:){${count}}(?::${HEX4}){1,${7 - count}}`),
  `(?:${HEX4}:){1,7}:`,
  `:(?:(?::${HEX4}){1,7}|:)`,
];
const DURATION_TIME =
  'T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)';
const DURATION_DATE =
  '(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)';

export const STRING_FORMATS: Readonly<Record<string, string>> = {
  date: `^${DATE}$`,
  time: `^${TIME}$`,
  'date-time': `^${DATE}T${TIME}$`,
  duration: `^P(?:${DURATION_DATE}(?:${DURATION_TIME})?|${DURATION_TIME}|[0-9]{1,9}W)$`,
  uuid: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
  email: `^[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32}){0,3}@${LABEL}(?:\\.${LABEL}){1,4}$`,
  hostname: `^${HOSTNAME}$`,
  ipv4: `^${BYTE}(?:\\.${BYTE}){3}$`,
  ipv6: `^(?:${IPV6.join('|')})$`,
  uri: `^[A-Za-z][A-Za-z0-9+-]{0,15}://${HOSTNAME}(?::[1-9][0-9]{0,3})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]{0,64}){0,16}(?:\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]{0,256})?(?:#[A-Za-z0-9._~-]{0,64})?$`,
};
