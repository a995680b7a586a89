/** Help of commands with many options: `--help` lists those that most people use, `--help-all` every one. */
import { type Command, CommanderError, Help } from 'commander';

/** `usual`: options of `--help`, as they are written behind `--`. */
export function shortenHelp(command: Command, usual: readonly string[]): Command {
  const shown = new Set([...usual, 'help', 'help-all']);
  let isWhole = false;
  return command
    .option('--help-all', 'print help with every option')
    .on('option:help-all', () => {
      isWhole = true;
      command.outputHelp();
      throw new CommanderError(0, 'commander.helpDisplayed', '(outputHelp)');
    })
    .configureHelp({
      visibleOptions(of) {
        const all = new Help().visibleOptions(of);
        return isWhole ? all : all.filter((option) => shown.has(option.name()));
      },
    });
}
