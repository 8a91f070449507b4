// placeholder
export async function validateRepository(_c: { directory: string; isPrintConfig: boolean }): Promise<number> { return 0; }
