// Answers tokenize requests: text or messages to tokens, tokens to text.

import type { GenerationBuilder } from './build-generation.ts';

export async function answerTokenize(builder: GenerationBuilder, body: Readonly<Record<string, unknown>>) {
  const { text, messages, tools, tokens } = body;
  if (Array.isArray(tokens)) {
    return { json: { text: tokens.length === 0 ? '' : builder.textOf(tokens) }, promptTokens: 0 };
  }
  const ids = await (messages === undefined
    ? builder.tokenize(text, {
        isSpecialAdded: body.add_special !== false,
        isSpecialParsed: body.parse_special !== false,
      })
    : builder.renderChat({ messages, tools, chat_template_kwargs: body.chat_template_kwargs }));
  const pieces = body.with_pieces === true ? { pieces: ids.map((token) => builder.pieceText(token)) } : {};
  return {
    json: { tokens: ids, ...pieces, count: ids.length, max_model_len: builder.contextLength },
    promptTokens: 0,
  };
}
