// Typed arrays whose address native code may keep, and views of native memory. Small typed arrays live in V8's moving
// heap, so each of these has an ArrayBuffer of its own.

import koffi from 'koffi';

export interface NativeArray<T> {
  readonly values: T;
  readonly address: bigint;
}

export function int32Array(length: number): NativeArray<Int32Array> {
  const values = new Int32Array(new ArrayBuffer(Math.max(length, 1) * 4));
  return { values, address: koffi.address(values) };
}

export function int8Array(length: number): NativeArray<Int8Array> {
  const values = new Int8Array(new ArrayBuffer(Math.max(length, 1)));
  return { values, address: koffi.address(values) };
}

export function float32Array(length: number): NativeArray<Float32Array> {
  const values = new Float32Array(new ArrayBuffer(Math.max(length, 1) * 4));
  return { values, address: koffi.address(values) };
}

export function pointerArray(length: number): NativeArray<BigUint64Array> {
  const values = new BigUint64Array(new ArrayBuffer(Math.max(length, 1) * 8));
  return { values, address: koffi.address(values) };
}

export function bytes(length: number): NativeArray<Buffer> {
  const values = Buffer.from(new ArrayBuffer(Math.max(length, 1)));
  return { values, address: koffi.address(values) };
}

/** Native memory as floats, without a copy; valid until its owner frees or reuses it. */
export function viewFloats(address: bigint, length: number): Float32Array {
  return new Float32Array(koffi.view(address, length * 4));
}
