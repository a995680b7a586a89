// What headlines say about the size of a result.

interface Coded {
  code: string;
}

/** Whether a diagnostic says that the result is larger than the model. */
export const isOfSize = ({ code }: Coded) => code === 'output-larger';

/** Those that are not in the headline. */
export const otherDiagnostics = <Each extends Coded>(diagnostics: Each[]) =>
  diagnostics.filter((each) => !isOfSize(each));
