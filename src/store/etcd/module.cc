// The module of `etcd://`.
#include "store/module.h"

#include "store/etcd/etcd_store.h"

STINT_STORE_MODULE(request, clock) {
  auto store = stint::store::etcd::EtcdStore::open(request, clock);
  if (!store) return store.error();
  return std::unique_ptr<stint::store::Store>(std::move(*store));
}
