export type { ChangeRule, Reference, Spec, SpecAttribute, SpecInput, SpecNode } from "../spec.ts";
