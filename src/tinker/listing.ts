/** Listed runs and checkpoints, from the wire's words to ours. */
import type { CheckpointInfo, TrainingRunInfo } from "./data.ts";
import { normalCheckpointPath, utcTime } from "./paths.ts";
import type { WireCheckpoint, WireTrainingRun } from "./wire.ts";

export const checkpointInfo = (wire: WireCheckpoint): CheckpointInfo => ({
  checkpointId: wire.checkpoint_id,
  type: wire.checkpoint_type,
  time: utcTime(wire.time),
  tinkerPath: normalCheckpointPath(wire.tinker_path),
  ...(wire.size_bytes == null ? {} : { sizeBytes: wire.size_bytes }),
  ...(wire.public === undefined ? {} : { isPublic: wire.public }),
  ...(wire.expires_at == null ? {} : { expiresAt: utcTime(wire.expires_at) }),
  ...(wire.user_metadata == null ? {} : { metadata: wire.user_metadata }),
});

export const trainingRunInfo = (wire: WireTrainingRun): TrainingRunInfo => ({
  runId: wire.training_run_id,
  baseModel: wire.base_model,
  isLora: wire.is_lora,
  ...(wire.lora_rank == null ? {} : { loraRank: wire.lora_rank }),
  ...(wire.user_metadata == null ? {} : { metadata: wire.user_metadata }),
  ...(wire.last_request_time === undefined ? {} : { lastRequestTime: utcTime(wire.last_request_time) }),
});
