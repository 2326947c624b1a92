import { describe, expect, test } from "vitest";
import { credentialIn, credentialInField, withoutCredentials } from "../../src/url.ts";

describe("what is secret in an address", () => {
  test.each([
    ["a password", "https://me:hunter2@host/v1", "https://[masked]@host/v1"],
    ["a token as the user", "https://hunter2@host/v1", "https://[masked]@host/v1"],
    ["a requirement", "x @ git+https://hunter2@host/x", "x @ git+https://[masked]@host/x"],
    ["a password of ssh", "ssh://me:hunter2@host", "ssh://[masked]@host"],
    ["parameters", "http://h/?a=1&token=hunter2&b=2#c", "http://h/?a=1&token=[masked]&b=2#c"],
    [
      "names with parts",
      "http://h/?X-Amz-Signature=hunter2&apiKey=hunter2",
      "http://h/?X-Amz-Signature=[masked]&apiKey=[masked]",
    ],
    [
      "compound names",
      "http://h/?SharedAccessSignature=hunter2&sig=hunter2",
      "http://h/?SharedAccessSignature=[masked]&sig=[masked]",
    ],
    ["a function's key", `http://h/?code=${"hunter2".repeat(4)}==`, "http://h/?code=[masked]"],
    ["escaped in JSON", '{"u":"http://h/?a=1\\u0026key=hunter2"}', '{"u":"http://h/?a=1\\u0026key=[masked]"}'],
    [
      "in the midst of words",
      "see http://h/?key=hunter2, or http://me:hunter2@h/.",
      "see http://h/?key=[masked] or http://[masked]@h/.",
    ],
  ])("%s", (_, text, masked) => {
    expect(credentialIn(text)).not.toBeUndefined();
    expect(credentialIn(text)).not.toContain("hunter2");
    expect(withoutCredentials(text)).toBe(masked);
    expect(withoutCredentials(withoutCredentials(text))).toBe(withoutCredentials(text));
  });

  test.each([
    "http://h/v1?page=key&monkey=banana&tokens=80&code=python",
    "https://h/grade?key=answer&auth=basic&max_token=80",
    "ssh://me@host",
    "git+ssh://git@host/x@v1",
    "https://host/@me/x@2",
    "https://h/?token=$TOKEN&key=${KEY}&sig={sig}",
    "hf://org/name",
    "me@example.org?token",
  ])("nothing in %s", (text) => {
    expect(credentialIn(text)).toBeUndefined();
    expect(withoutCredentials(text)).toBe(text);
  });
});

test("prose may speak of addresses, a word of a command holds one", () => {
  const text = "curl http://me:hunter2@host/";
  expect(credentialInField(text, false)).toBeUndefined();
  expect(credentialInField(text, true)).toContain("password");
  expect(credentialInField(" http://me:hunter2@host/ ", false)).toContain("password");
});
