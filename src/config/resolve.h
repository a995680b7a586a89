// The resolver of configs, by its name of before: one file still asks for it so.
#pragma once
#include "config/resolve/resolve.h"
