"""A worker that imports for a minute; it says in its working folder that it has begun."""

import os
import time
from pathlib import Path

Path("importing.tmp").write_text(str(os.getpid()))
Path("importing.tmp").rename("importing")
time.sleep(60)
