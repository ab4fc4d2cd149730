// Asks as programs in Node do: a question per line of stdin, what came of it per line of stdout.
//
// A question: {id, client, api, way, base, payload}. The client is "official" or "vercel"; the way is
// "plain", "raw" (each event of a stream as it is), "joined" (a stream that the SDK puts together) or
// "left" (a stream that is left after a few events).
// The answer: {id, events, final, error}, as far as there is any of it.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The packages are where `make test-real` has installed them, which is not above this file.
const require = createRequire(process.argv[2]);
const { OpenAI } = require("openai");
const { Anthropic } = require("@anthropic-ai/sdk");
const { generateText, jsonSchema, stepCountIs, streamText, tool } = require("ai");
const { createOpenAI } = require("@ai-sdk/openai");
const { createAnthropic } = require("@ai-sdk/anthropic");

const LEFT_AFTER = 5;
const KEY = { apiKey: "key" };
const FINAL = { chat: "finalChatCompletion", responses: "finalResponse", messages: "finalMessage" };
const TOOLS = {
  get_weather: tool({
    description: "Get weather for a city",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
    execute: async () => "rain",
  }),
};

async function official({ api, way, base, payload }, events) {
  const [Client, baseURL] = api === "messages" ? [Anthropic, base] : [OpenAI, `${base}/v1`];
  const client = new Client({ ...KEY, baseURL, maxRetries: 0 });
  const resource = api === "chat" ? client.chat.completions : client[api];
  if (way === "plain") return resource.create(payload);
  if (way === "raw" || way === "left") {
    for await (const event of await resource.create({ ...payload, stream: true })) {
      events.push(event);
      if (way === "left" && events.length === LEFT_AFTER) break; // which is how this SDK is stopped
    }
    return null;
  }
  const stream = resource.stream(payload);
  for await (const event of stream) events.push(event);
  return stream[FINAL[api]]();
}

function model(api, base, name) {
  const settings = { ...KEY, baseURL: `${base}/v1` };
  if (api === "messages") return createAnthropic(settings)(name);
  return createOpenAI(settings)[api](name);
}

async function vercel({ api, way, base, payload }, events) {
  const asked = {
    model: model(api, base, payload.model),
    messages: payload.messages,
    maxOutputTokens: payload.limit,
    temperature: 0,
    maxRetries: 0,
    ...(payload.tools ? { tools: TOOLS, stopWhen: stepCountIs(2) } : {}),
  };
  if (way === "plain") return told(await generateText(asked));
  const stream = streamText({ ...asked, onError: () => {} }); // else it prints what we tell
  for await (const part of stream.fullStream) {
    if (part.type === "error") throw part.error;
    events.push(part.type);
  }
  return told({
    text: await stream.text,
    reasoningText: await stream.reasoningText,
    finishReason: await stream.finishReason,
    totalUsage: await stream.totalUsage,
    steps: await stream.steps,
  });
}

function told({ text, reasoningText, finishReason, totalUsage, steps }) {
  const calls = steps.flatMap((step) => step.toolCalls);
  return {
    text: text ?? "",
    reasoning: reasoningText ?? "",
    finish: finishReason,
    usage: [totalUsage.inputTokens, totalUsage.outputTokens],
    calls: calls.map(({ toolCallId, toolName, input, invalid }) => [toolCallId, toolName, input, !!invalid]),
    steps: steps.length,
  };
}

async function answer(line) {
  const question = JSON.parse(line);
  const told = { id: question.id, events: [], final: null, error: null };
  try {
    told.final = await { official, vercel }[question.client](question, told.events);
  } catch (error) {
    told.error = {
      name: error?.constructor?.name ?? typeof error,
      status: error?.status ?? error?.statusCode ?? null,
      message: String(error?.message ?? JSON.stringify(error)),
      retry_after: error?.headers?.get?.("retry-after") ?? error?.responseHeaders?.["retry-after"] ?? null,
    };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

createInterface({ input: process.stdin }).on("line", answer);
