// SPDX-License-Identifier: MIT
// What is known of a lock: of a wait for it who had it, of a holder who waited. What is not known is said.
import type { LockAnswer, LockOwner, WaitForLock } from "../backend/answers";
import { LOCKS } from "../backend/late_lists";
import { bringTrack, goTo } from "../model/actions";
import { lateOf } from "../model/late";
import { lockName, selectHolder } from "../model/locks";
import { visible } from "../model/names";
import { store } from "../model/store";
import { count, duration, exact } from "../model/time";
import { Bar, Empty, FullName, formFor, functionName, Name, Swatch } from "./parts";

const threadName = (trace: number, thread: number) => {
  const of = store.state.traces[trace]?.info.threads[thread];
  return of ? visible(`${of.name || "thread"} ${of.tid}`) : "";
};

const lockOf = (trace: number, { lock }: LockAnswer) => lateOf(LOCKS, trace)?.locks[lock];

/** Who had it, and the call that this thread was in: one click away. */
function Owner({ trace, owner, verb }: { trace: number; owner: LockOwner | null; verb: string }) {
  if (!owner) return <div class="quiet">Who {verb} it is not known.</div>;
  if (owner.thread < 0)
    return (
      <div class="quiet">
        Thread {owner.tid} {verb} it, which is not in this trace.
      </div>
    );
  const who = threadName(trace, owner.thread);
  const { call } = owner;
  return (
    <>
      {call ? (
        <button
          class="call-line"
          data-testid="holder"
          title={`Go to ${functionName(trace, call.function)}, in which ${who} ${verb} it`}
          onClick={() => void goTo({ trace, thread: owner.thread, index: call.index })}
        >
          <Swatch trace={trace} func={call.function} />
          <FullName text={formFor(trace, call.function, 40)} />
          <span class="quiet num">{who}</span>
        </button>
      ) : (
        <button class="call-line" title="Show its track" onClick={() => bringTrack(trace, owner.thread)}>
          <Name
            text={
              owner.callKnown
                ? `${who} ${verb} it, in no traced call`
                : `${who} ${verb} it; what it did then is not in this trace`
            }
          />
        </button>
      )}
      {owner.owners > 1 && <div class="quiet">and {count(owner.owners - 1)} more shared it</div>}
    </>
  );
}

/** Below the facts of a selected wait. */
export function LockWaitView({ trace, facts }: { trace: number; facts: LockAnswer }) {
  const lock = lockOf(trace, facts);
  const { owner, wait } = facts;
  if (!wait) return null;
  return (
    <div class="waits" data-testid="lock-wait">
      <h3>Waited for {lock ? lockName(lock) : "a lock"}, while this had it</h3>
      <Owner trace={trace} owner={owner} verb="had" />
      {lock && (
        <div class="quiet" data-testid="lock-sum">
          {lock.name && `${lock.lock}: `}
          {count(lock.waits)} waits, {duration(lock.total)} in all, the longest {duration(lock.longest)}
        </div>
      )}
      {owner !== null && owner.place !== null && (
        <div class="actions">
          <button
            data-testid="to-holder"
            title="Who else waited for it then"
            onClick={() => void selectHolder(trace, facts.lock, owner.place!)}
          >
            Who else waited
          </button>
        </div>
      )}
    </div>
  );
}

function Waiter({ trace, wait, least }: { trace: number; wait: WaitForLock; least: number }) {
  return (
    <button
      class="call-line"
      data-testid="waiter"
      title="Go to this wait"
      onClick={() => void goTo({ trace, thread: wait.thread, index: wait.index })}
    >
      <Bar share={least > 0 ? wait.duration / least : 0} />
      <Name text={threadName(trace, wait.thread)} />
      <span class="num">
        {wait.open ? "at least " : ""}
        {duration(wait.duration)}
      </span>
    </button>
  );
}

/** One who had a lock, who is selected in the lock's track. */
export function HeldPanel({ trace, facts }: { trace: number; facts: LockAnswer }) {
  const lock = lockOf(trace, facts);
  const { held, owner, waiters, waiterCount } = facts;
  if (!held) return <Empty>…</Empty>;
  const who = owner ? threadName(trace, owner.thread) || `thread ${owner.tid}` : "a thread that is not known";
  const longest = Math.max(...waiters.map((wait) => wait.duration));
  const ended = held.ended === "released" ? "" : held.ended;
  return (
    <div class="call" data-testid="held">
      <section class="call-main" aria-label="Lock">
        <h2 class="call-name">
          <bdi>
            {lock ? lockName(lock) : "a lock"}, held by {who}
          </bdi>
        </h2>
        <p class="sentence" data-testid="held-sentence">
          {held.exact
            ? `Held for ${duration(held.duration)}.`
            : owner
              ? "A wait says who had it as it began; until when is not recorded: karst run --system locks=all does."
              : "Somebody waited, and no wait says who had it: karst run --system locks=all records it."}
        </p>
        <dl class="facts">
          <div title={exact(held.duration)}>
            <dt>{held.exact ? "Held" : "Shown"}</dt>
            <dd data-fact="held">{duration(held.duration)}</dd>
          </div>
          <div title={`${exact(held.begin)} after the trace’s first event`}>
            <dt>From</dt>
            <dd>{duration(held.begin)}</dd>
          </div>
          {held.exact && ended && (
            <div>
              <dt>Ends</dt>
              <dd class="mark">{ended}</dd>
            </div>
          )}
        </dl>
        <h3>{held.exact ? "Taken in" : "What it did then"}</h3>
        <Owner trace={trace} owner={owner} verb="has" />
      </section>
      <section class="call-family" aria-label="Who waited">
        <header class="pane-head">
          <h3>
            {waiterCount === 0 ? "Nobody waited" : waiterCount === 1 ? "1 waited" : `${count(waiterCount)} waited`}{" "}
            meanwhile
          </h3>
        </header>
        <div class="callees">
          {waiters.map((wait) => (
            <Waiter trace={trace} wait={wait} least={longest} />
          ))}
          {waiterCount > waiters.length && <div class="quiet">and {count(waiterCount - waiters.length)} more</div>}
        </div>
      </section>
    </div>
  );
}
