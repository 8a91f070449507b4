// The official openai package for Python, with all that it needs, since nothing is resolved: what the tests of the OpenAI API
// hand to findPackages.

export const OPENAI_PACKAGES: readonly string[] = [
  'openai==3.49.0',
  'anyio==4.16.0',
  'httpx2==2.16.0',
  'httpcore2==2.16.0',
  'jiter==0.19.0',
  'pydantic==2.14.3',
  'pydantic_core==2.50.4',
  'typing_extensions==4.16.0',
  'sniffio==1.3.1',
  'annotated-types==0.8.0',
  'idna==3.20',
  'truststore==0.10.5',
  'typing-inspection==0.4.5',
  'h11==0.16.0',
];
