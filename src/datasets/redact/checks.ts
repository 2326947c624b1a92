/** Checksums and shapes by which numbers are told from numbers that only look alike. */

/** ISO/IEC 7812: the right length for a network, and the Luhn sum. */
export function isCard(match: string): boolean {
  const digits = match.replace(/\D/g, "");
  if (
    !/^(?:4\d{12}(?:\d{3}|\d{6})?|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|2720\d{12}|3[47]\d{13}|3(?:0[0-5]|[689])\d{11,13}|35\d{14}|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}|(?:50|5[6-9]|6\d)\d{10,17})$/.test(
      digits,
    )
  )
    return false;
  let sum = 0;
  for (let i = 0; i < digits.length; i += 1) {
    const digit = Number(digits.charAt(digits.length - 1 - i));
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0 && !/^(\d)\1+$/.test(digits);
}

/** ISO 13616: country, check digits, and the number modulo 97 is 1. */
export function isIban(match: string): boolean {
  const text = match.replace(/[ -]/g, "").toUpperCase();
  if (text.length < 15 || text.length > 34) return false;
  let remainder = 0;
  for (const c of text.slice(4) + text.slice(0, 4)) {
    const value = c >= "A" ? c.charCodeAt(0) - 55 : Number(c);
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
  }
  return remainder === 1;
}

/** Four octets; loopback, wildcard and netmasks name nobody, and a number after "version" is no address. */
export function isIpv4(match: string, text: string, at: number): boolean {
  const octets = match.split(".");
  if (!octets.every((o) => Number(o) <= 255 && !(o.length > 1 && o.startsWith("0")))) return false;
  if (/^(?:127\.|255\.|0\.0\.0\.0$)/.test(match)) return false;
  return !/(?:\bv|version|ver\.?|release|section|§)\s*$/i.test(text.slice(Math.max(0, at - 12), at));
}

/** Eight groups, or fewer around one `::`, with at least three written; times and MAC addresses are none. */
export function isIpv6(match: string): boolean {
  const halves = match.split("::");
  if (halves.length > 2) return false;
  const groups = match.split(":").filter((g) => g !== "");
  if (halves.length === 1 ? groups.length !== 8 : groups.length > 7 || groups.length < 3) return false;
  return /[a-f]/i.test(match) || groups.some((g) => g.length > 2);
}

/**
 * Written as people write telephone numbers: with a country code, or as a national number with its leading zero in groups. A bare run of digits is more often something else and stays.
 */
export function isPhone(match: string): boolean {
  const digits = match.replace(/\D/g, "");
  if (digits.length < 8 || digits.length > 15) return false;
  if (match.startsWith("+")) return true;
  if (/^00[1-9]\d{0,2}[ .\-/(]/.test(match)) return true;
  if (isDate(match)) return false;
  return /^\(?0[1-9]\d{0,4}\)?[ /-]/.test(match) && digits.length >= 9 && digits.length <= 12;
}

const isDate = (match: string): boolean => /^\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[ T]|$)/.test(match);
