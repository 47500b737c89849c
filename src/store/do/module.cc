// The module of `do://`.
#include "store/module.h"

#include "store/do/do_store.h"

STINT_STORE_MODULE(request, clock) {
  auto store = stint::store::durable::DoStore::open(request, clock);
  if (!store) return store.error();
  return std::unique_ptr<stint::store::Store>(std::move(*store));
}
