package instance

import (
	"math/rand/v2"
	"testing"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// reservedCPUTwin sums the reservations of the individual cores, in hundredths of a millicore, band by band.
func reservedCPUTwin(vcpus int64) int64 {
	var first, second, middle, rest int64
	for core := int64(1); core <= vcpus; core++ {
		switch {
		case core == 1:
			first += 6000
		case core == 2:
			second += 1000
		case core <= 4:
			middle += 500
		default:
			rest += 250
		}
	}
	return first/100 + second/100 + middle/100 + rest/100
}

// More cores never reserve less. Each further core reserves no more than the one before, except for rounding. The sum
// equals that of the individual cores.
func TestReservedCPUCurve(t *testing.T) {
	for vcpus, want := range map[int64]int64{0: 0, 1: 60, 2: 70, 3: 75, 4: 80, 5: 82, 6: 85, 8: 90, 48: 190, 96: 310, 192: 550, 448: 1190} {
		if got := reservedCPU(vcpus); got != want {
			t.Errorf("%d vCPUs reserve %dm, want %dm", vcpus, got, want)
		}
	}
	for vcpus := int64(1); vcpus <= 2000; vcpus++ {
		step, before := reservedCPU(vcpus)-reservedCPU(vcpus-1), int64(60)
		if vcpus > 1 {
			before = reservedCPU(vcpus-1) - reservedCPU(vcpus-2)
		}
		if step < 0 || step > before+1 {
			t.Errorf("vCPU %d reserves %dm, the one before %dm", vcpus, step, before)
		}
		if got, want := reservedCPU(vcpus), reservedCPUTwin(vcpus); got != want {
			t.Errorf("%d vCPUs reserve %dm, want %dm", vcpus, got, want)
		}
	}
}

// randomType returns a type with a plausible network.
func randomType(random *rand.Rand) *catalog.Type {
	t := &catalog.Type{
		Name: "x1.large", VCPUs: 1 + random.Int64N(400), ENIs: 1 + random.Int64N(60), IPv4PerENI: 1 + random.Int64N(64),
		Hypervisor: []string{catalog.HypervisorNitro, catalog.HypervisorXen, ""}[random.IntN(3)],
	}
	if t.ENIs > 2 && random.IntN(3) == 0 {
		t.Cards, t.ENIsCard0 = 2, 1+random.Int64N(t.ENIs-1)
	}
	return t
}

// Pods by network: more interfaces or addresses never allow fewer pods, and more reserved interfaces never allow more.
// Every pod except the two in the host network has an address. Prefixes respect the kubelet's limits, and have no
// effect without Nitro.
func TestNetworkPodsCurve(t *testing.T) {
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 1))
		it := randomType(random)
		settings, class := Settings{IPv6: random.IntN(2) == 0}, Class{PrefixDelegation: random.IntN(2) == 0}
		reserved := random.Int64N(5)
		pods := func(it *catalog.Type, reserved int64) int64 {
			settings.ReservedENIs = reserved
			return class.networkPods(it, &settings)
		}
		n := pods(it, reserved)
		more := *it
		if more.ENIs, more.ENIsCard0 = it.ENIs+1, it.ENIsCard0+min(1, it.ENIsCard0); pods(&more, reserved) < n {
			t.Errorf("seed %d: an additional interface allows fewer pods: %+v", seed, it)
		}
		more = *it
		if more.IPv4PerENI++; pods(&more, reserved) < n {
			t.Errorf("seed %d: an additional address allows fewer pods: %+v", seed, it)
		}
		if pods(it, reserved+1) > n {
			t.Errorf("seed %d: one interface less allows more pods: %+v", seed, it)
		}
		addresses := max(0, it.PrimaryENIs()-reserved) * (it.IPv4PerENI - 1)
		prefixes := (settings.IPv6 || class.PrefixDelegation) && it.Hypervisor != catalog.HypervisorXen
		switch {
		case n < 0, !prefixes && n > addresses+2, prefixes && n > addresses*16+2:
			t.Errorf("seed %d: %d pods on %d addresses (prefixes %t): %+v", seed, n, addresses, prefixes, it)
		case prefixes && (n > 250 || n > 110 && it.VCPUs <= 30):
			t.Errorf("seed %d: %d pods on %d vCPUs", seed, n, it.VCPUs)
		case it.PrimaryENIs() > reserved && n < 2:
			t.Errorf("seed %d: %d pods although an interface is available: %+v", seed, n, it)
		}
		switch plain := eniPods(it, reserved); {
		case prefixes && n < min(plain, 110):
			t.Errorf("seed %d: prefixes && n < min(plain, 110), %d, pods, %d, without prefixes (prefixes %t, ): %+v", seed, n, plain, prefixes, it)
		case !prefixes && n != plain:
			t.Errorf("seed %d: !prefixes && n != plain, %d, pods, %d, without prefixes (prefixes %t, ): %+v", seed, n, plain, prefixes, it)
		}
	}
}

// Memory: what nodes have grows with the amount that EC2 reports and shrinks with the overhead. The reserved amount
// grows with the number of pods.
func TestMemoryCurves(t *testing.T) {
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 2))
		it := &catalog.Type{MemoryMiB: 65 + random.Int64N(1<<20), Architectures: []string{[]string{"x86_64", "arm64"}[random.IntN(2)]}}
		overhead := random.Float64()
		n := estimatedMemory(it, overhead)
		more := *it
		more.MemoryMiB += 1 + random.Int64N(1000)
		if estimatedMemory(&more, overhead) < n || estimatedMemory(it, overhead*random.Float64()) < n {
			t.Errorf("seed %d: estimates are not in order for %d MiB at %v", seed, it.MemoryMiB, overhead)
		}
		switch {
		case n < 0:
			t.Errorf("seed %d: n is %v, want at least 0, MiB at %v", seed, n, overhead)
		case n > it.MemoryMiB*miB:
			t.Errorf("seed %d: n is %v, want at most %v, bytes of %d, MiB at %v", seed, n, it.MemoryMiB*miB, it.MemoryMiB, overhead)
		case n%miB != 0:
			t.Errorf("seed %d: n%%miB is %v, want 0, %d, MiB at %v", seed, n%miB, n, overhead)
		}
	}
	var kubelet Kubelet
	reserved, err := kubelet.reservations()
	if err != nil {
		t.Fatal(err)
	}
	linux, bottlerocket := familyOf("AL2"), familyOf("Bottlerocket")
	var last int64
	for _, name := range []string{"t3.nano", "m5.large", "m5.4xlarge", "m5.24xlarge", "c8i.metal-96xl"} {
		it := known(t, name)
		podCount := eniPods(it, 0)
		same := reserved.overhead(it, &linux, map[string]int64{pods: 7})
		if got := reserved.overhead(it, &linux, map[string]int64{pods: podCount}); got[memory] != same[memory] || got[memory] <= last {
			t.Errorf("%s reserves %d, and %d with other pods; a smaller type %d", name, got[memory], same[memory], last)
		}
		if got := reserved.overhead(it, &bottlerocket, map[string]int64{pods: podCount}); got[memory] != same[memory] {
			t.Errorf("%s reserves %d on Bottlerocket, %d elsewhere", name, got[memory], same[memory])
		}
		last = same[memory]
	}
}
