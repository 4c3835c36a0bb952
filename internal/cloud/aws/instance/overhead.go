package instance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// Amounts that the bootstrap of the EKS images reserves for the kubelet by default (source: nodeadm and bootstrap.sh of
// the EKS AMI).
const (
	reservedMiBPerPod = 11
	reservedMiB       = 255
	reservedStorage   = 1 * giB
	evictionMemory    = 100 * miB
	evictionStorage   = 0.1 // of the capacity
	signalMemory      = "memory.available"
	signalNodeFS      = "nodefs.available"
	neverEvict        = 100.0 // percent, by which the kubelet disables the threshold
)

// reservations are the parsed kubelet settings of a class.
type reservations struct {
	kube, system map[string]int64
	// memory and storage are the hard eviction thresholds.
	memory, storage threshold
}

// threshold is a fraction of the capacity, or an amount.
type threshold struct {
	part   float64
	amount int64
}

func (t threshold) of(capacity int64) int64 {
	return int64(math.Ceil(t.part*float64(capacity))) + t.amount
}

func (k *Kubelet) reservations() (r reservations, err error) {
	if r.kube, err = reservedAmounts("kubeReserved", k.KubeReserved); err != nil {
		return r, err
	}
	if r.system, err = reservedAmounts("systemReserved", k.SystemReserved); err != nil {
		return r, err
	}
	if r.memory, err = k.threshold(signalMemory, threshold{amount: evictionMemory}); err != nil {
		return r, err
	}
	r.storage, err = k.threshold(signalNodeFS, threshold{part: evictionStorage})
	return r, err
}

func reservedAmounts(field string, texts map[string]string) (map[string]int64, error) {
	amounts := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		quantity, err := karpv1.ParseQuantity(texts[name])
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("kubelet.%s[%q]: is %q, want a quantity such as 100m or 1Gi", field, name, texts[name])
		}
		if name == cpu || name == memory || name == ephemeralStorage {
			amounts[name] = cloud.Amount(name, quantity)
		}
	}
	return amounts, nil
}

func (k *Kubelet) threshold(signal string, unset threshold) (threshold, error) {
	text, set := k.EvictionHard[signal]
	if !set {
		return unset, nil
	}
	wrong := fmt.Errorf("kubelet.evictionHard[%q]: is %q, want a quantity such as 200Mi or a percentage such as 5%%", signal, text)
	if number, is := strings.CutSuffix(text, "%"); is {
		percentage, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || !(percentage >= 0 && percentage <= 100):
			return unset, wrong
		case percentage == neverEvict:
			return threshold{}, nil
		}
		return threshold{part: percentage / 100}, nil
	}
	quantity, err := karpv1.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return unset, wrong
	}
	return threshold{amount: quantity.Value()}, nil
}

// overhead returns the overhead in the units of cloud.InstanceType: the reservations for the kubelet and the system,
// and the eviction thresholds.
func (r *reservations) overhead(t *catalog.Type, f *family, capacity map[string]int64) map[string]int64 {
	podCount := eniPods(t, 0)
	if f.reservesForPods {
		podCount = capacity[pods]
	}
	kube := map[string]int64{
		cpu:              reservedCPU(t.VCPUs),
		memory:           (reservedMiBPerPod*podCount + reservedMiB) * miB,
		ephemeralStorage: reservedStorage,
	}
	maps.Copy(kube, r.kube)
	amounts := map[string]int64{}
	for _, name := range []string{cpu, memory, ephemeralStorage} {
		amounts[name] = kube[name] + r.system[name]
	}
	amounts[memory] += r.memory.of(capacity[memory])
	amounts[ephemeralStorage] += r.storage.of(capacity[ephemeralStorage])
	return amounts
}

// reservedCPU returns the reservation in millicores: 6% of the first core, 1% of the second, 0.5% of the third and
// fourth, 0.25% of all others. Each band is rounded to whole millicores.
func reservedCPU(vcpus int64) int64 {
	bands := []struct{ cores, per100000 int64 }{{1, 6000}, {1, 1000}, {2, 500}, {math.MaxInt64, 250}}
	var millicores int64
	for _, band := range bands {
		cores := min(vcpus, band.cores)
		millicores += cores * 1000 * band.per100000 / 100_000
		vcpus -= cores
	}
	return millicores
}
