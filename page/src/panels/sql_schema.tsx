// SPDX-License-Identifier: MIT
// The tables that SQL can ask, as `karst query --schema` prints them.
import { store } from "../model/store";
import { useAnswer } from "./answers";
import { Failed, Waiting } from "./parts";

export function SqlSchema({ trace }: { trace: number }) {
  const answer = useAnswer(`${trace}`, (signal) => store.state.traces[trace]!.backend.schema(signal));
  const { value, error } = answer;
  if (error) return <Failed message={error} again={answer.again} />;
  if (!value) return <Waiting answer={answer} />;
  return (
    <div class="sql-schema" data-testid="sql-schema" tabIndex={0} aria-label="Tables">
      {value.missing && <p class="warn">{value.missing}</p>}
      {value.tables.map((table) => (
        <details key={table.name}>
          <summary>
            <b>{table.name}</b> <span class="quiet">{table.sentence}</span>
          </summary>
          <dl>
            {table.columns.map((column) => (
              <>
                <dt title={column.type}>{column.name}</dt>
                <dd>{column.sentence}</dd>
              </>
            ))}
          </dl>
        </details>
      ))}
      <dl>
        {value.macros.map((macro) => (
          <>
            <dt>{macro.name}</dt>
            <dd>{macro.sentence}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}
