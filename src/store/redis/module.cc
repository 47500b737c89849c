// The module stint_redis.so.
#include "store/module.h"

#include "store/redis/redis_store.h"

STINT_STORE_MODULE(request, clock) {
  static_cast<void>(clock);  // the server's is the store's
  auto store = stint::store::RedisStore::open(request);
  if (!store) return store.error();
  return std::unique_ptr<stint::store::Store>(std::move(*store));
}
