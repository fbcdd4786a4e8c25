/**
 * Named points around each durable write. `HARNESS_FAILPOINT=<name>[#<n>]` makes the process kill itself with SIGKILL
 * when it reaches the point for the n-th time (1 when absent). Free when the variable is not set.
 */
export const failpoint: (name: string) => void = arm(process.env['HARNESS_FAILPOINT']);

function arm(spec: string | undefined): (name: string) => void {
  if (spec === undefined || spec === '') return () => undefined;
  const [, target = spec, count] = /^(.*?)(?:#(\d+))?$/.exec(spec) ?? [];
  let left = Number(count ?? 1);
  return (name) => {
    if (name !== target) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
  };
}
