// A model in CommonJS, with a package of its own beside it.
const { Tensor } = require('nereid/model');
const { shout } = require('shout');

module.exports = {
  config: {
    inputs: [{ name: 'TEXT', datatype: 'BYTES', dims: [-1] }],
    outputs: [{ name: 'LOUD', datatype: 'BYTES', dims: [-1] }],
  },
  execute: (requests) =>
    requests.map((request) => {
      const text = request.input('TEXT');
      return { outputs: [Tensor.fromStrings('LOUD', text.strings().map(shout), text.shape)] };
    }),
};
