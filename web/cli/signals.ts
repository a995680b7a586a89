/** The signals that the command answers, and what it says then. */

export const exitCodes = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGQUIT: 131,
  SIGALRM: 142,
  SIGTERM: 143,
  SIGXCPU: 152,
} as const;
export type Signal = keyof typeof exitCodes;

export function codeOf(name: Signal): { code: string; message: string } {
  const code = name === 'SIGINT' ? 'interrupted' : 'terminated';
  return { code, message: `${code}; nothing was written` };
}
