// The entry of every command.
#pragma once

namespace sluice {

int run_command(int argc, char** argv);
int chat_command(int argc, char** argv);
int serve_command(int argc, char** argv);
int bench_command(int argc, char** argv);
int logits_command(int argc, char** argv);
int perplexity_command(int argc, char** argv);
int inspect_command(int argc, char** argv);
int tokenize_command(int argc, char** argv);
int detokenize_command(int argc, char** argv);
int pack_command(int argc, char** argv);
int template_command(int argc, char** argv);
int memory_command(int argc, char** argv);
int plan_command(int argc, char** argv);
int phase_command(int argc, char** argv);
int claims_command(int argc, char** argv);
int validate_command(int argc, char** argv);
int simulate_command(int argc, char** argv);
int calibrate_command(int argc, char** argv);
int compare_command(int argc, char** argv);

}  // namespace sluice
