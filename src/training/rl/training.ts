/** placeholder */
export const reinforcement = undefined as never;
