// The statistics of a model as the message of ModelStatistics.

import type { ModelStatisticsSnapshot, ResponseStatisticsSnapshot } from '../../domain/statistics.ts';
import type { InferResponseStatistics, ModelStatistics } from '../../wire/v2-proto/messages.ts';

export function statisticsMessage(model: ModelStatisticsSnapshot): ModelStatistics {
  return {
    name: model.name,
    version: String(model.version),
    last_inference: model.lastInferenceMs,
    inference_count: model.inferenceCount,
    execution_count: model.executionCount,
    inference_stats: {
      success: model.success,
      fail: model.fail,
      queue: model.queue,
      compute_input: model.computeInput,
      compute_infer: model.computeInfer,
      compute_output: model.computeOutput,
      cache_hit: model.cacheHit,
      cache_miss: model.cacheMiss,
    },
    batch_stats: model.batchStats.map((batch) => ({
      batch_size: batch.batchSize,
      compute_input: batch.computeInput,
      compute_infer: batch.computeInfer,
      compute_output: batch.computeOutput,
    })),
    memory_usage: model.memoryUsage.map(({ type, id, byteSize }) => ({ type, id, byte_size: byteSize })),
    response_stats: Object.fromEntries(
      Object.entries(model.responseStats).map(([index, stats]) => [index, responseMessage(stats)]),
    ),
  };
}

function responseMessage(stats: ResponseStatisticsSnapshot): InferResponseStatistics {
  return {
    compute_infer: stats.computeInfer,
    compute_output: stats.computeOutput,
    success: stats.success,
    fail: stats.fail,
    empty_response: stats.emptyResponse,
    cancel: stats.cancel,
  };
}
