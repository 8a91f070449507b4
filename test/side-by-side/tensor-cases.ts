// Cases about tensors: every datatype in and out, and what a model makes itself. Part of case-list.ts.
import { type Case, type CaseInput, stepCases } from './cases.ts';

const DATATYPES: readonly Omit<CaseInput, 'name'>[] = [
  { datatype: 'BOOL', shape: [3], data: [true, false, true] },
  { datatype: 'UINT8', shape: [2], data: [0, 255] },
  { datatype: 'UINT16', shape: [2], data: [0, 65535] },
  { datatype: 'UINT32', shape: [2], data: [0, 4294967295] },
  { datatype: 'UINT64', shape: [2], data: [0, 9007199254740991] },
  { datatype: 'INT8', shape: [2], data: [-128, 127] },
  { datatype: 'INT16', shape: [2], data: [-32768, 32767] },
  { datatype: 'INT32', shape: [2], data: [-2147483648, 2147483647] },
  { datatype: 'INT64', shape: [2], data: [-9007199254740991, 9007199254740991] },
  { datatype: 'FP32', shape: [3], data: [-0.5, 1e-8, 3] },
  { datatype: 'FP64', shape: [2], data: [-0.1, 1e300] },
  { datatype: 'BYTES', shape: [4], data: ['', 'é', '日本', 'a b'] },
];
/** What JSON cannot say. */
const RAW_DATATYPES: readonly Omit<CaseInput, 'name'>[] = [
  { datatype: 'FP16', shape: [3], hex: '003c00c0007c' },
  { datatype: 'BF16', shape: [2], hex: '803f00c0' },
  { datatype: 'UINT64', shape: [1], hex: 'ffffffffffffffff' },
  { datatype: 'FP32', shape: [3], hex: '0000c07f0000807f000080ff' },
  { datatype: 'BYTES', shape: [2], hex: '0200000000ff0100000080' },
];

const SEVERAL: readonly CaseInput[] = [
  { name: 'RANK2', datatype: 'INT32', shape: [2, 2], data: [1, 2, 3, 4] },
  { name: 'IN_FP32', datatype: 'FP32', shape: [1], data: [1] },
  { name: 'IN_BOOL', datatype: 'BOOL', shape: [1], data: [true] },
];

const inputName = (datatype: string) => `IN_${datatype === 'BYTES' ? 'STRING' : datatype}`;

function oneCaseEach(
  kind: 'http' | 'grpc',
  inputs: readonly Omit<CaseInput, 'name'>[],
  what: string,
): Case[] {
  return inputs.map((input) => ({
    id: `datatypes.${kind}.${input.datatype.toLowerCase()}${what}`,
    exchanges: [
      { kind, request: { model: 'datatypes', inputs: [{ name: inputName(input.datatype), ...input }] } },
    ],
  }));
}

export const datatypeCases: readonly Case[] = [
  ...oneCaseEach('http', DATATYPES, ''),
  ...oneCaseEach('grpc', DATATYPES, ''),
  ...oneCaseEach('grpc', RAW_DATATYPES, '_raw'),
  ...oneCaseEach(
    'grpc',
    [...DATATYPES, ...RAW_DATATYPES.slice(0, 2)].map(({ datatype }) => ({ datatype, shape: [0], hex: '' })),
    '_empty',
  ),
  ...['http', 'grpc'].flatMap((kind) =>
    [false, true].map(
      (isReversed): Case => ({
        id: `datatypes.${kind}.several${isReversed ? '_reversed' : ''}`,
        exchanges: [
          {
            kind: kind === 'http' ? 'http' : 'grpc',
            request: { model: 'datatypes', inputs: isReversed ? SEVERAL.toReversed() : SEVERAL },
          },
        ],
      }),
    ),
  ),
];

export const tensorCases: readonly Case[] = [
  ...stepCases(
    'tensors',
    'http',
    `transposed sliced reversed fortran broadcast read_only empty scalar another_datatype another_shape not_texts
     fixed_bytes texts_transposed no_texts says datatype_number is_same_memory refused input_values`,
  ),
  ...stepCases('tensors', 'grpc', 'transposed empty scalar another_datatype another_shape texts no_texts'),
];
