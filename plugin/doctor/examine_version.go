package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/cloud"
)

// OldestKubernetes and NewestKubernetes are the oldest and the newest minor version 1.X of Kubernetes on which tests were
// run, not all of them on each version between (README.md, what works now). The targets `make versions` and `make nightly` run the
// core end-to-end cases, the API tests and the comparison with kube-scheduler on them. The README states the same range,
// and the charts refuse older versions; a test compares.
const OldestKubernetes, NewestKubernetes = 33, 37

// kubernetes returns a finding if the API server's version is not tested.
func kubernetes(f *Facts, _ Options) []cloud.Finding {
	major, minor, known := minorOf(f.Kubernetes)
	switch {
	case !known || major == 1 && minor >= OldestKubernetes && minor <= NewestKubernetes:
		return nil
	case major == 1 && minor < OldestKubernetes:
		return []cloud.Finding{found(KubernetesUntried, "cluster/kubernetes",
			fmt.Sprintf("the API server is Kubernetes %s; the oldest version that this controller was run on is 1.%d",
				f.Kubernetes, OldestKubernetes),
			"upgrade the cluster")}
	default:
		return []cloud.Finding{found(KubernetesUntried, "cluster/kubernetes",
			fmt.Sprintf("the API server is Kubernetes %s; the newest version that this controller was run on is 1.%d",
				f.Kubernetes, NewestKubernetes),
			"upgrade the controller to a version that is tested on it")}
	}
}

// minorOf parses a version such as v1.36.3 or v1.33.1-eks-1234.
func minorOf(version string) (major, minor int, known bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(strings.TrimRight(parts[1], "+"))
	return major, minor, err == nil
}
