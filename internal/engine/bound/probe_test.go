package bound

import (
	"fmt"
	"os"
	"time"
)

func init() {
	probe = func(s *search, f float64, added int) {
		fmt.Fprintf(os.Stderr, "%v items=%d kinds=%d cols=%d master=%.4f best=%.4f f=%.4f added=%d work=%dM+%dM\n", time.Now().Format("05.000"), len(s.items), len(s.kinds), len(s.master.columns), s.master.worth(), s.best, f, added, s.work/1000000, s.master.work/1000000)
	}
}
