import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ModelConfig } from '../../domain/model-config.ts';
import { checkSteps } from './check-steps.ts';
import { createPlan, type PlanPort, shapeFor } from './plan.ts';
import { createRoute, USED_THROUGHOUT } from './route.ts';
import { ensembleConfig, modelConfig, type StepText } from './test-ensemble.ts';

const A = modelConfig('a', { in: ['X'], out: ['Y', 'Z'] });
const B = modelConfig('b', { in: ['X', 'W'], out: ['Y'], optional: ['W'] });
const REPEAT = modelConfig('repeat', { in: ['X'], out: ['Y'], isDecoupled: true });

function composing(...models: ModelConfig[]): Parameters<typeof createPlan>[1] {
  return models.map((config) => ({
    config,
    isDecoupled: config.model_transaction_policy?.decoupled ?? false,
  }));
}

describe('the plan of an ensemble', () => {
  test('steps may be listed before those whose tensors they take', () => {
    const steps: StepText[] = [
      { model: 'b', in: { X: 'mid' }, out: { Y: 'OUT' } },
      { model: 'a', in: { X: 'IN' }, out: { Y: 'mid' } },
    ];
    const plan = createPlan(ensembleConfig({ in: ['IN'], out: ['OUT'] }, steps), composing(B, A));
    assert.deepEqual(
      plan.steps.map(({ index, model }) => [index, model]),
      [
        [0, 'b'],
        [1, 'a'],
      ],
    );
    assert.deepEqual(
      plan.tensors.map(({ name }) => name),
      ['IN', 'mid', 'OUT'],
    );
    assert.equal(plan.isDecoupled, false);
  });

  test('what a decoupled step writes, and what is made of it, exists once per response', () => {
    const steps: StepText[] = [
      { model: 'repeat', in: { X: 'IN' }, out: { Y: 'word' } },
      { model: 'b', in: { X: 'word', W: 'IN' }, out: { Y: 'OUT' } },
    ];
    const plan = createPlan(ensembleConfig({ in: ['IN'], out: ['OUT'] }, steps), composing(REPEAT, B));
    assert.deepEqual(
      plan.tensors.map(({ name, scope }) => [name, scope]),
      [
        ['IN', 0],
        ['word', 1],
        ['OUT', 1],
      ],
    );
    assert.deepEqual(
      plan.steps.map(({ scope, outputScope }) => [scope, outputScope]),
      [
        [0, 1],
        [1, 1],
      ],
    );
    assert.equal(plan.isDecoupled, true);
    // IN is taken by passes of which nobody knows the number.
    assert.deepEqual(createRoute(plan, []).useCounts, [USED_THROUGHOUT, 1, 1]);
  });

  test('tensors of two decoupled steps must not meet, in a step or in a response', () => {
    const both: StepText[] = [
      { model: 'repeat', in: { X: 'IN' }, out: { Y: 'one' } },
      { model: 'repeat', in: { X: 'IN' }, out: { Y: 'two' } },
    ];
    const met = ensembleConfig({ in: ['IN'], out: ['OUT'] }, [
      ...both,
      { model: 'b', in: { X: 'one', W: 'two' }, out: { Y: 'OUT' } },
    ]);
    assert.throws(() => createPlan(met, composing(REPEAT, REPEAT, B)), {
      message: "in ensemble e, step of model 'b' receives inputs originated from different decoupled models",
    });
    assert.throws(
      () => createPlan(ensembleConfig({ in: ['IN'], out: ['one', 'two'] }, both), composing(REPEAT, REPEAT)),
      /step of model 'e' receives inputs/,
    );
  });
});

describe('the route of a set of outputs', () => {
  const steps: StepText[] = [
    { model: 'a', in: { X: 'IN' }, out: { Y: 'left', Z: 'mid' } },
    { model: 'b', in: { X: 'mid' }, out: { Y: 'right' } },
  ];
  const plan = createPlan(ensembleConfig({ in: ['IN'], out: ['left', 'right'] }, steps), composing(A, B));

  test('all of them run without a request for certain ones', () => {
    const route = createRoute(plan, []);
    assert.deepEqual(route.stepOutputs, [['Y', 'Z'], ['Y']]);
    assert.deepEqual(route.useCounts, [1, 1, 1, 1]);
  });

  test('only the steps that are needed run, and are asked only for what is', () => {
    assert.deepEqual(createRoute(plan, ['left']).stepOutputs, [['Y'], undefined]);
    const right = createRoute(plan, ['right']);
    assert.deepEqual(right.stepOutputs, [['Z'], ['Y']]);
    assert.deepEqual(right.isOutput, [false, false, false, true]);
  });
});

describe('the shape at a boundary of batching', () => {
  const port = (isBatching: boolean, dims: number[]): PlanPort => ({
    name: 'X',
    tensor: 0,
    dims,
    isBatching,
  });

  test('a batch of one is added and taken away', () => {
    assert.deepEqual(shapeFor(port(true, [3]), [3], false), [1, 3]);
    assert.deepEqual(shapeFor(port(false, [3]), [1, 3], true), [3]);
  });

  test('shapes that fit stay', () => {
    assert.deepEqual(shapeFor(port(true, [3]), [5, 3], true), [5, 3]);
    // A model without batches whose first dimension is free takes the batch as it is.
    assert.deepEqual(shapeFor(port(false, [-1, 3]), [5, 3], true), [5, 3]);
    assert.deepEqual(shapeFor(port(true, [3]), [2, 3], false), [2, 3]);
    assert.deepEqual(shapeFor(port(false, [3]), [2, 3], true), [2, 3]);
  });
});

describe('the models of the steps', () => {
  const check = (config: ModelConfig, ...models: ModelConfig[]) => checkSteps(config, composing(...models));
  const one = (step: StepText, io: Parameters<typeof ensembleConfig>[0] = { in: ['IN'], out: ['OUT'] }) =>
    ensembleConfig(io, [step]);

  test('inputs and outputs must exist, and inputs that are not optional be mapped', () => {
    assert.throws(() => check(one({ model: 'a', in: { Q: 'IN' }, out: { Y: 'OUT' } }), A), {
      message: 'in ensemble e, ensemble tensor IN is mapping to non-existing input Q in model a',
    });
    assert.throws(() => check(one({ model: 'a', in: { X: 'IN' }, out: { Q: 'OUT' } }), A), {
      message: 'in ensemble e, ensemble tensor OUT is mapped from non-existing output Q in model a',
    });
    assert.throws(() => check(one({ model: 'b', in: { W: 'IN' }, out: { Y: 'OUT' } }), B), {
      message: 'in ensemble e, input X in model b is not mapped to any ensemble tensors',
    });
    check(one({ model: 'b', in: { X: 'IN' }, out: { Y: 'OUT' } }), B);
  });

  test('batches of the ensemble must fit into those of each model', () => {
    const config = one(
      { model: 'a', in: { X: 'IN' }, out: { Y: 'OUT' } },
      { in: ['IN'], out: ['OUT'], maxBatchSize: 8 },
    );
    const small = { ...A, max_batch_size: 4 };
    assert.throws(() => check(config, small), {
      message:
        'ensemble e allows maximum batch size 8, but it contains model a which only allows maximum batch size to be 4',
    });
    check(config, { ...A, max_batch_size: 8 });
  });

  test('datatypes and shapes must agree; a free first dimension takes a batch', () => {
    const config = one({ model: 'a', in: { X: 'IN' }, out: { Y: 'OUT' } });
    const other = { ...A, input: A.input.map((input) => ({ ...input, data_type: 'TYPE_FP32' })) };
    assert.throws(() => check(config, other), {
      message:
        'in ensemble e, ensemble tensor IN: inconsistent data type: TYPE_UINT8 is inferred from model e while TYPE_FP32 is inferred from model a',
    });
    const wide = { ...A, input: A.input.map((input) => ({ ...input, dims: [-1, 2] })) };
    assert.throws(() => check(config, wide), {
      message:
        'in ensemble e, ensemble tensor IN: inconsistent shape: [1] is inferred from model e while [-1,2] is inferred from model a',
    });
    const steps: StepText[] = [
      { model: 'a', in: { X: 'IN' }, out: { Y: 'mid' } },
      { model: 'b', in: { X: 'mid' }, out: { Y: 'OUT' } },
    ];
    const taker = { ...B, input: B.input.map((input) => ({ ...input, dims: [-1, 1] })) };
    check(ensembleConfig({ in: ['IN'], out: ['OUT'] }, steps), { ...A, max_batch_size: 4 }, taker);
  });
});
