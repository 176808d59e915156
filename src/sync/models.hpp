/// The built-in synchronization models, one registry line per family; private to the room.
#pragma once

#include "fluentps/sync_model.hpp"

namespace fluentps {

SyncModelEntry bsp_entry();
SyncModelEntry asp_entry();
SyncModelEntry ssp_entry();
SyncModelEntry dssp_entry();
SyncModelEntry pssp_entry();
SyncModelEntry drop_entry();
SyncModelEntry partial_entry();
SyncModelEntry psp_entry();
SyncModelEntry softsync_entry();

}  // namespace fluentps
