/**
 * The few Python string methods that chat templates lean on and that the Jinja library gets wrong: its `strip` family
 * ignores its argument and strips what JavaScript calls white space, not what Python does.
 */

/** What `str.isspace` is true for (Unicode 15, all in the basic plane). */
const PYTHON_SPACE: ReadonlySet<string> = new Set(
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000",
);

type StripSide = "both" | "left" | "right";

/** `str.strip(chars)`, `lstrip`, `rstrip`: `chars` is a set of characters; absent or null it is white space. */
export function pythonStrip(text: string, chars: string | null | undefined, side: StripSide): string {
  const set = chars == null ? undefined : new Set(chars);
  const strips = (c: string) => (set ? set.has(c) : PYTHON_SPACE.has(c));
  const points = Array.from(text);
  let start = 0;
  let end = points.length;
  if (side !== "right") while (start < end && strips(points[start] as string)) start += 1;
  if (side !== "left") while (end > start && strips(points[end - 1] as string)) end -= 1;
  return start === 0 && end === points.length ? text : points.slice(start, end).join("");
}

const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const two = (n: number) => String(n).padStart(2, "0");

/** `strftime` in the C locale and UTC, for the directives that templates use; an unknown one stays as it is. */
export function pythonStrftime(date: Date, format: string): string {
  const month = MONTHS[date.getUTCMonth()] as string;
  const day = DAYS[date.getUTCDay()] as string;
  const values: Record<string, string> = {
    Y: String(date.getUTCFullYear()),
    y: two(date.getUTCFullYear() % 100),
    m: two(date.getUTCMonth() + 1),
    d: two(date.getUTCDate()),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    H: two(date.getUTCHours()),
    I: two(date.getUTCHours() % 12 || 12),
    p: date.getUTCHours() < 12 ? "AM" : "PM",
    M: two(date.getUTCMinutes()),
    S: two(date.getUTCSeconds()),
    "%": "%",
  };
  return format.replace(/%([A-Za-z%])/g, (whole, letter: string) => values[letter] ?? whole);
}
