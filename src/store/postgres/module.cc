#include "store/module.h"

#include "store/postgres/postgres_store.h"

STINT_STORE_MODULE(request, clock) { return stint::store::PostgresStore::open(request, clock); }
