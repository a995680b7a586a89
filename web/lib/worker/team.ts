// Workers that do one job together. All make the same calls in the same order; what one of them computes, it shares with
// the others, which wait for it where they need it. So messages need no names: a member's arrive in the order of its calls.

/** A member's view of its team. */
export interface Team {
  readonly member: number;
  /** 1: it works without others. */
  readonly members: number;
  /** Sends copies to all others. */
  share(bytes: Uint8Array<ArrayBuffer>[]): void;
  /** The next that `member` shared. */
  receive(member: number): Promise<Uint8Array[]>;
}

/** The messages of the other members, each one's in order. */
export class TeamMail {
  readonly #arrived = new Map<number, Uint8Array[][]>();
  readonly #waiting = new Map<number, (bytes: Uint8Array[]) => void>();

  arrive(member: number, bytes: Uint8Array[]): void {
    const waiting = this.#waiting.get(member);
    this.#waiting.delete(member);
    if (waiting) {
      waiting(bytes);
      return;
    }
    const arrived = this.#arrived.get(member) ?? [];
    arrived.push(bytes);
    this.#arrived.set(member, arrived);
  }

  receive(member: number): Promise<Uint8Array[]> {
    const next = this.#arrived.get(member)?.shift();
    if (next) return Promise.resolve(next);
    return new Promise((resolve) => this.#waiting.set(member, resolve));
  }
}
