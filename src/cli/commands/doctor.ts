/** `rlcli doctor`: what this machine has of what servers and sandboxes need. Starts and downloads nothing. */
import { examineMachine } from "../../servers/machine.ts";
import { recipeOf } from "../../servers/skyrl/recipe.ts";
import { checksOf, verdictsOf } from "../../servers/verdicts.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { renderDoctor } from "../views/doctor.ts";

export async function doctor(context: CommandContext): Promise<ExitCode> {
  const { python } = recipeOf([], {}, context.env);
  const machine = await examineMachine(context.env, python);
  const [checks, backends] = [checksOf(machine), verdictsOf(machine)];
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, machine, checks, backends })}\n`);
  else context.out(renderDoctor(checks, backends, context.style));
  return EXIT.done;
}
