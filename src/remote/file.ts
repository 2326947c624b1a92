/** A file at an address: what it is known by without reading it. */
import { type Digest, digestJson } from "../digest.ts";
import { shownAddress } from "../url.ts";
import { type Answer, headerOf } from "./request.ts";

/** What a server says of a content, so that another one can be told from it. */
export interface Version {
  readonly bytes?: number;
  /** As the header has it, with quotes. */
  readonly etag?: string;
  /** `Last-Modified`, as the header has it. */
  readonly modified?: string;
}

/** A file to read. `digest`: of its content, where the server says nothing that tells one content from another. */
export interface RemoteFile extends Version {
  readonly address: string;
  readonly digest?: Digest;
}

/** A file whose content is settled: by its length with an ETag or a time, or by its digest. */
export interface PinnedFile extends RemoteFile {
  readonly bytes: number;
}

export const nameOf = ({ address }: RemoteFile): string => shownAddress(address);

/**
 * What a dataset's identity has of it. The address is a part, since an ETag says nothing beside another address; where the content's own
 * digest is known, that is all.
 */
export function identityOf({ address, bytes, etag, modified, digest }: PinnedFile): Digest {
  return digest ?? digestJson({ address, bytes, ...(etag === undefined ? { modified } : { etag }) });
}

/** Whether the length and one of the others are known, so that another content would be noticed. */
export const isTelling = ({ bytes, etag, modified }: Version): boolean =>
  bytes !== undefined && (etag !== undefined || modified !== undefined);

/** Of an answer with a file or a part of one. */
export function versionOf(answer: Answer): Version {
  const bytes = totalBytes(answer);
  const etag = headerOf(answer, "etag");
  const modified = headerOf(answer, "last-modified");
  return {
    ...(bytes === undefined ? {} : { bytes }),
    ...(etag === undefined ? {} : { etag }),
    ...(modified === undefined ? {} : { modified }),
  };
}

function totalBytes(answer: Answer): number | undefined {
  const [pattern, header] =
    answer.status === 200 ? [/^(\d+)$/, "content-length"] : [/^bytes [^/]*\/(\d+)$/, "content-range"];
  const text = pattern.exec(headerOf(answer, header as string) ?? "")?.[1];
  return text === undefined ? undefined : Number(text);
}

/** Whether nothing speaks against two versions being the same content. An ETag says more than a time. */
export function isSame(a: Version, b: Version): boolean {
  if (a.bytes !== undefined && b.bytes !== undefined && a.bytes !== b.bytes) return false;
  if (a.etag !== undefined && b.etag !== undefined) return a.etag === b.etag;
  return a.modified === undefined || b.modified === undefined || a.modified === b.modified;
}

/** What a part of a file must be asked for with, so that it is of the same content; undefined where nothing would do. */
export function validator({ etag, modified }: Version): string | undefined {
  return etag !== undefined && !etag.startsWith("W/") ? etag : modified;
}
