// What `nereid validate` says of targets that are not there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import { routerWarnings } from './router-warnings.ts';

const CONFIG = parseModelConfig(`platform: "router" router {
  target [ { model: "resnet" weight: 1 }, { name: "b" model: "rsenet" weight: 1 } ]
  shadow { model: "nothing_like_it" }
}`);

test('targets and shadows that are not in the repository are told, with the name that was meant', () => {
  assert.deepEqual(routerWarnings(CONFIG, ['resnet', 'ab']), [
    {
      what: "target 'b' is the model 'rsenet', which is not in this repository",
      why: 'it gets no requests, the other targets get its share',
      fix: [`add the model 'rsenet', or write "resnet" if that was meant`],
    },
    {
      what: "shadow 'nothing_like_it' is the model 'nothing_like_it', which is not in this repository",
      why: 'its copies fail',
      fix: ["add the model 'nothing_like_it'"],
    },
  ]);
});

test('a router whose targets are all there, and any other model, gets none', () => {
  assert.deepEqual(routerWarnings(CONFIG, ['resnet', 'rsenet', 'nothing_like_it']), []);
  assert.deepEqual(routerWarnings(parseModelConfig('backend: "identity"'), []), []);
});
