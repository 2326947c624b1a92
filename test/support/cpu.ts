/** Time that the processor spends on some work, in milliseconds: unlike a clock it does not count what others do meanwhile. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
