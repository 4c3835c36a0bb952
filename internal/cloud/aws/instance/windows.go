package instance

import (
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// windowsLicense is the price of Windows in USD per vCPU and hour, which the price list has as the difference to Linux
// (https://aws.amazon.com/ec2/pricing/on-demand/: m5.large costs 0.096 with Linux, and 0.188 with Windows).
const windowsLicense = 0.046

// unsupportedOnWindows are the families of instance types that Amazon EKS does not support for nodes with Windows
// (https://docs.aws.amazon.com/eks/latest/userguide/windows-support.html).
var unsupportedOnWindows = map[string]bool{"c3": true, "c4": true, "d2": true, "i2": true, "m4": true, "m6a": true, "r3": true}

// refusesWindows returns why nodes of the type do not run Windows, or an empty string.
func refusesWindows(t *catalog.Type, arch string) string {
	switch {
	case arch != karpv1.ArchitectureAMD64:
		return "is " + arch + ", and Windows runs on amd64 only"
	case unsupportedOnWindows[t.Family()] && t.Name != "m4.16xlarge":
		return "is of the family " + t.Family() + ", which Amazon EKS does not support for Windows"
	}
	return ""
}

// windowsNetworkPods returns the number of pods of a node with Windows: it has one network interface for pods, and gets
// prefixes only if the cluster says so, for which the class has its annotation
// (https://docs.aws.amazon.com/eks/latest/best-practices/prefix-mode-win.html).
func (c *Class) windowsNetworkPods(t *catalog.Type) int64 {
	if c.PrefixDelegation && t.Hypervisor != catalog.HypervisorXen {
		return min(windowsPods, (t.IPv4PerENI-1)*prefixAddresses)
	}
	return min(windowsPods, t.IPv4PerENI-1)
}

// WindowsPrices are the prices of instances with Windows: those of a book of their own, and the price with Linux plus
// that of the license for what the book lacks. It is safe for concurrent use.
type WindowsPrices struct {
	Own, Linux *Prices
	// License returns the price of Windows for a type, USD per hour (CNY in China).
	License func(typeName string) float64
}

// NewWindowsPrices returns the prices for a region, beside those for Linux. typeOf finds a type by its name.
func NewWindowsPrices(region string, linux *Prices, typeOf func(name string) (*catalog.Type, bool)) *WindowsPrices {
	rate := 1.0
	if InChina(region) {
		rate = YuanPerDollar
	}
	return &WindowsPrices{Own: NewPrices(region, &catalog.Catalog{}), Linux: linux, License: func(typeName string) float64 {
		t, known := typeOf(typeName)
		if !known {
			return 0
		}
		return float64(t.VCPUs) * windowsLicense * rate
	}}
}

// OnDemand returns the on-demand price of a type per hour.
func (w *WindowsPrices) OnDemand(typeName string) (price float64, known bool) {
	if price, known = w.Own.OnDemand(typeName); known {
		return price, true
	}
	return w.licensed(typeName)(w.Linux.OnDemand(typeName))
}

// Spot returns the spot price of a type in a zone per hour.
func (w *WindowsPrices) Spot(typeName, zone string) (price float64, known bool) {
	if price, known = w.Own.Spot(typeName, zone); known {
		return price, true
	}
	return w.licensed(typeName)(w.Linux.Spot(typeName, zone))
}

func (w *WindowsPrices) licensed(typeName string) func(price float64, known bool) (float64, bool) {
	return func(price float64, known bool) (float64, bool) {
		if !known {
			return price, false
		}
		return price + w.License(typeName), true
	}
}

// Version changes with every update of either book.
func (w *WindowsPrices) Version() uint64 { return w.Own.Version() + w.Linux.Version() }
