// fuzz_replay CORPUS: every file of the corpora once through its target, so that neither can rot.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int fuzz_text(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_wire(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_request(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_state(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_log(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  struct Family {
    const char* name;
    int (*target)(const std::uint8_t*, std::size_t);
  };
  for (const Family& family :
       {Family{"text", fuzz_text}, Family{"wire", fuzz_wire}, Family{"request", fuzz_request},
        Family{"state", fuzz_state}, Family{"log", fuzz_log}}) {
    std::size_t count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(argv[1]) / family.name)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      family.target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++count;
    }
    std::printf("%s: %zu inputs\n", family.name, count);
    if (count == 0) return 1;
  }
  return 0;
}
