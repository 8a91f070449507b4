// Every bound that is not in a model's config, in one place, each with its unit and its reason.

/** A whole HTTP body, binary tensors included. Triton has no bound; ours keeps one client from taking all memory. */
export const HTTP_BODY_BYTES_MAX = 4 * 1024 * 1024 * 1024 - 1;

/** As in newer Triton: more non-empty chunks than this in one body is an attack, not a client. */
export const HTTP_CHUNKS_MAX = 65_536;

/** A client has this long to send the head of a request. */
export const HTTP_HEAD_MS_MAX = 60_000;

/** And this long for the whole request; a gigabyte over a slow line fits, a stuck client does not stay. */
export const HTTP_REQUEST_MS_MAX = 600_000;

/** At exit the last answers have this long to leave; a client that sends or reads nothing does not hold the server. */
export const FRONTEND_CLOSE_MS_MAX = 2_000;

/** Request line and headers; Node allows 16 KiB too. */
export const HTTP_HEAD_BYTES_MAX = 16 * 1024;

/** What a client may send ahead of the answer to its last request, and leave unread of our answers, before we wait. */
export const HTTP_AHEAD_BYTES_MAX = 1024 * 1024;

/** JSON nesting, as in newer Triton. */
export const JSON_DEPTH_MAX = 100;

/** JSON longer than this is parsed on a worker thread, so that the event loop never stalls for milliseconds. */
export const JSON_INLINE_BYTES_MAX = 128 * 1024;

/** Requests waiting for one model when its config sets no max_queue_size. */
export const QUEUE_REQUESTS_MAX = 100_000;

/** Bytes of tensors waiting for one model; past it requests are refused rather than memory exhausted. */
export const QUEUE_BYTES_MAX = 4 * 1024 * 1024 * 1024;

/** Sequences that wait for a slot of one model; each holds at least one request, and its id. */
export const SEQUENCES_WAITING_MAX = 10_000;

/** One host frame; above the largest body, below what a Buffer can hold. */
export const FRAME_BYTES_MAX = 8 * 1024 * 1024 * 1024;

/** Payloads up to this cross to a host faster with the frame itself; larger ones through shared memory, which two batches have. */
export const SOCKET_PAYLOAD_BYTES_MAX = 32 * 1024;

/** A host must say hello within this. */
export const HOST_HELLO_MS_MAX = 30_000;

/** Loading a model file may be slow (gigabytes from a network disk), but not endless. */
export const HOST_LOAD_MS_MAX = 600_000;

/** A host that neither answers a ping nor finishes work for this long is ended. */
export const HOST_SILENCE_MS_MAX = 30_000;

/** How often an idle host is pinged. */
export const HOST_PING_INTERVAL_MS = 5_000;

/** A model's own is_ready() must answer within this, as in Triton; later it is not ready. */
export const READY_CHECK_MS_MAX = 5_000;

/** A host that was told to stop is killed after this. */
export const HOST_STOP_MS_MAX = 5_000;

/** Back-off between restarts of one instance: first, and largest. */
export const RESTART_DELAY_MS_MIN = 50;
export const RESTART_DELAY_MS_MAX = 10_000;

/** A host alive for this long is healthy again: its back-off starts anew. */
export const RESTART_RESET_MS = 30_000;

/** Restarts in a row that fail before requests waiting for the instance are failed as well. */
export const RESTART_ATTEMPTS_MAX = 5;

/** Class results are for labels, not for whole tensors; as in newer Triton. */
export const CLASSIFICATION_ELEMENTS_MAX = 1_000_000;

/**
 * Batches of one instance whose execution is over but whose decoupled requests still send responses. A host that
 * answers later than it executes could otherwise take in the whole queue.
 */
export const OPEN_BATCHES_PER_INSTANCE_MAX = 1024;

/** Registered shared-memory regions; each holds a file descriptor until it is unregistered. */
export const SHM_REGIONS_MAX = 4096;

/** Bytes that are being read from regions at one time, over all requests; a sparse region costs its maker nothing. */
export const SHM_READING_BYTES_MAX = 4 * 1024 * 1024 * 1024;

/** A tensor up to this is copied from or to a region at once: cheaper than a round through the thread pool. */
export const SHM_INLINE_BYTES_MAX = 256 * 1024;

/** One step of a larger copy, so that it does not keep a thread of the pool from the others. */
export const SHM_STEP_BYTES_MAX = 8 * 1024 * 1024;

/** One buffer of a tensor read from a region, below what a Buffer can hold. */
export const SHM_BUFFER_BYTES_MAX = 1024 * 1024 * 1024;

/** One gRPC message; the limit of protobuf, and Triton's. */
export const GRPC_MESSAGE_BYTES_MAX = 2 ** 31 - 1;

/** Answers of one gRPC stream that wait for its client, before decoupled models are asked to pause. */
export const GRPC_QUEUED_BYTES_MAX = 1024 * 1024;

/** Requests of one gRPC stream that are not yet answered; more are not read until some are. */
export const GRPC_STREAM_REQUESTS_MAX = 1024;

/** Calls of other models that one host may have open. */
export const HOST_CALLS_MAX = 4096;

/** Sequences whose target a router remembers; beyond it the longest silent one is forgotten. About 100 bytes each. */
export const ROUTER_SEQUENCES_MAX = 262_144;

/** A request that comes to the same router this often is going in circles; a model that calls itself may come twice. */
export const ROUTER_PASSES_MAX = 8;

/** Copies that a shadow may have unanswered when its config does not say: enough to measure, too few to crowd out. */
export const ROUTER_SHADOW_REQUESTS_DEFAULT = 64;

/** Bytes of tensors in those copies; the request they share lives as long as its slowest copy. */
export const ROUTER_SHADOW_BYTES_DEFAULT = 256 * 1024 * 1024;

/**
 * The response cache hashes, compares and copies this much in one turn of the event loop: SHA-256 of 1 MiB takes 0.6 ms, and
 * of 100 MiB 60 ms, which is then spread over a hundred turns.
 */
export const CACHE_STEP_BYTES_MAX = 1024 * 1024;

/** A request and its answer together; what is larger is executed each time. Hashing and copying it takes 150 ms of a core. */
export const CACHE_ENTRY_BYTES_MAX = 128 * 1024 * 1024;

/** Requests of one model whose look-up is not over; with more the cache is the slow part, and they are executed at once. */
export const CACHE_LOOKUPS_MAX = 1024;

/** Bytes of entries on their way into the cache; past it answers are not stored. */
export const CACHE_WRITING_BYTES_MAX = 256 * 1024 * 1024;

/** Nobody waits longer for an answer of Redis, unless socket_timeout says so. */
export const REDIS_REPLY_MS_MAX = 100;

/** To reach Redis and log in, unless connect_timeout says so; no request waits for it. */
export const REDIS_CONNECT_MS_MAX = 2_000;

/** An entry in Redis: at one gigabit per second this much crosses in a third of REDIS_REPLY_MS_MAX. */
export const REDIS_ENTRY_BYTES_MAX = 4 * 1024 * 1024;

/** After Redis failed, the next attempt. */
export const REDIS_RETRY_MS = 1_000;

/** Requests inside one ensemble, over all of its steps. */
export const ENSEMBLE_REQUESTS_MAX = 100_000;

/** Bytes of tensors that one ensemble holds for its steps; past it requests are refused and decoupled steps paused. */
export const ENSEMBLE_BYTES_MAX = 4 * 1024 * 1024 * 1024;

/** Responses of one decoupled step of an ensemble that the steps after it have not dealt with, before it is paused. */
export const ENSEMBLE_PASSES_MAX = 64;

/**
 * A decoupled step is paused for as long as the steps after it get on. When they do not for this long, they may wait for
 * the very instance that is paused; then it goes on until the bytes above are full. Triton waits 300 s.
 */
export const ENSEMBLE_STALL_MS_MAX = 30_000;

/** Sets of requested outputs for which an ensemble keeps the steps they need; clients use a few. */
export const ENSEMBLE_ROUTES_MAX = 256;

/** One request of the OpenAI API: a million tokens of text. */
export const OPENAI_BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Choices of one request, prompts times `n`; each is a sequence of its own in the model. */
export const OPENAI_CHOICES_MAX = 1024;

/** Texts of one embeddings request, as OpenAI has it, and documents of one rerank request. */
export const OPENAI_INPUTS_MAX = 2048;

/** Schema, grammar or choices of one request, in characters of JSON; the settings are handled on the event loop. */
export const OPENAI_STRUCTURE_CHARS_MAX = 128 * 1024;

/** Tokens in a list of the settings, as the engine has it. */
export const OPENAI_SETTING_TOKENS_MAX = 1024;

/** Text that may begin a tool call is held back up to this, then it is content. */
export const OPENAI_TOOL_CALL_CHARS_MAX = 128 * 1024;
