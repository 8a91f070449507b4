// What the HTTP frontend needs of the server behind it: the services of every frontend, and its own settings.

import type { HttpRoutes } from '../http-routes.ts';
import type { RestrictedApis, ServerServices } from '../services.ts';

export type { RestrictedCategory } from '../services.ts';

export interface HttpServices extends ServerServices {
  /** Undefined: no header is forwarded. */
  readonly headerForwardPattern: RegExp | undefined;
  readonly inputBytesMax: number;
  readonly restrictedApis: RestrictedApis;
  /** Paths beside those of router.ts; undefined when there are none. */
  readonly furtherRoutes?: HttpRoutes | undefined;
}
