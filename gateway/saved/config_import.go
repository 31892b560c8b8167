package saved

import "time"

// ImportTimeout bounds how long reading the configuration files of Apprise takes,
// all those of a key together.
const ImportTimeout = 10 * time.Second
