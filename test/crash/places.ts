import { Folder } from './folder.js';
import { inLanes } from './lanes.js';
import { isKeyed, type PlannedSend } from './protocol.js';
import { type Place, pointOf } from './scenarios.js';

/** Places whose first lives share a data folder; two of them live at the same time. */
const PLACES_IN_A_FOLDER = 12;
const NEIGHBOURS = 2;

interface Outcome {
  name: string;
  point: string;
  reached: boolean;
  faults: string[];
}

interface Planned {
  place: Place;
  send: PlannedSend;
}

/** Dies once at each of some places, and comes back. */
export class PlacesRun {
  private readonly outcomes: Outcome[] = [];

  /** `lanes` data folders at once. */
  constructor(private readonly lanes: number) {}

  /** One process for each place, many in one data folder; then one worker that finishes what they left. */
  async firstLives(places: readonly Place[]): Promise<void> {
    const groups: Planned[][] = [];
    for (let from = 0; from < places.length; from += PLACES_IN_A_FOLDER)
      groups.push(places.slice(from, from + PLACES_IN_A_FOLDER).map(planned));
    await inLanes(groups, this.lanes, async (group) => {
      const folder = new Folder();
      const reached = new Set<Planned>();
      const live = async (item: Planned): Promise<void> => {
        const { leaseMs, failpoint } = item.place;
        const { killed } = await folder.live({ role: 'client', sends: [item.send], leaseMs }, { failpoint });
        if (killed) reached.add(item);
      };
      await inLanes(group, NEIGHBOURS, live);
      const faults = await folder.finish(group.map(({ send }) => send).filter(({ text, key }) => !folder.acked.has(key) && isKeyed(text)));
      const ofNobody = faults.filter((fault) => !group.some(({ send }) => fault.includes(send.session_id)));
      for (const [index, item] of group.entries()) {
        const own = faults.filter((fault) => fault.includes(item.send.session_id));
        this.add('first life', item.place, reached.has(item), index === 0 ? [...ofNobody, ...own] : own);
      }
    });
  }

  /** A worker that takes over what a first process left in mid-call dies at the place; another one finishes it. */
  async takeovers(places: readonly Place[]): Promise<void> {
    await inLanes(places, this.lanes, async (place) => {
      const folder = new Folder();
      const { send } = planned(place, 0);
      const first = await folder.live({ role: 'client', sends: [send] }, { failpoint: 'dispatch:after#1' });
      const second = await folder.live({ role: 'worker', sends: [] }, { failpoint: place.failpoint });
      this.add('takeover', place, first.killed && second.killed, await folder.finish());
    });
  }

  get faults(): string[] {
    return this.outcomes.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`));
  }

  get unreached(): string[] {
    return this.outcomes.filter((outcome) => !outcome.reached).map((outcome) => outcome.name);
  }

  /** The points at which a process has died. */
  get points(): Set<string> {
    return new Set(this.outcomes.filter((outcome) => outcome.reached).map((outcome) => outcome.point));
  }

  get deaths(): number {
    return this.outcomes.filter((outcome) => outcome.reached).length;
  }

  table(): string {
    const rows = this.outcomes.map(
      ({ name, reached, faults }) => `${name.padEnd(52)} ${reached ? 'died' : 'NOT REACHED'}   ${faults.length} violations`,
    );
    return rows.sort().join('\n');
  }

  private add(life: string, { kind, failpoint }: Place, reached: boolean, faults: string[]): void {
    this.outcomes.push({ name: `${life}: ${kind} ${failpoint}`, point: pointOf(failpoint), reached, faults });
  }
}

function planned(place: Place, index: number): Planned {
  const { kind, contract } = place;
  const session_id = `s${index}-${kind}`;
  return { place, send: { session_id, text: `${kind} ${session_id} 1`, key: `k-${session_id}`, ...(contract ? { contract } : {}) } };
}
