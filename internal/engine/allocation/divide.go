package allocation

import (
	"math/big"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// accelerators are the prefixes of the extended resources that device plugins report for accelerators. Other extended
// resources, such as network interfaces, have no part in a price.
var accelerators = [...]string{
	"nvidia.com/",           // gpu, gpu.shared, mig-1g.5gb: https://github.com/NVIDIA/k8s-device-plugin
	"amd.com/",              // gpu: https://github.com/ROCm/k8s-device-plugin
	"gpu.intel.com/",        // i915, xe: https://github.com/intel/intel-device-plugins-for-kubernetes
	"habana.ai/",            // gaudi: https://docs.habana.ai/en/latest/Orchestration/Gaudi_Kubernetes
	"aws.amazon.com/neuron", // neuron, neuroncore, neurondevice: https://awsdocs-neuron.readthedocs-hosted.com
	"google.com/tpu",        // https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
}

// isAccelerator reports whether a resource counts accelerators or parts of them.
func isAccelerator(resource string) bool {
	return slices.ContainsFunc(accelerators[:], func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

// divider divides nodes of one snapshot. Its numbers are kept from node to node, because a fleet has tens of thousands
// of pods.
type divider struct {
	// priced are the resources by which shares are counted: CPU, memory and accelerators.
	priced []quantity.Resource
	use    quantity.Vector
	// weights are the shares of the pods and of the rest, times whole. remainders are what rounding down leaves of them.
	weights, remainders    []big.Int
	whole, sum, all, price big.Int
	factors                []big.Int
	product, quotient      big.Int
	order                  []int
}

func newDivider(resources []string) *divider {
	d := &divider{priced: []quantity.Resource{quantity.CPU, quantity.Memory}, use: make(quantity.Vector, len(resources))}
	for r, name := range resources {
		if isAccelerator(name) {
			d.priced = append(d.priced, quantity.Resource(r))
		}
	}
	d.factors = make([]big.Int, len(d.priced))
	return d
}

// divide returns the parts of a price that belong to the node's pods, in their order, and last the part of the rest. They
// are valid until the next call.
func (d *divider) divide(n *model.Node, price int64, parts []int64) []int64 {
	d.weigh(n)
	d.price.SetInt64(price)
	parts, d.order = parts[:0], d.order[:0]
	left := price
	for i := range d.weights {
		d.product.Mul(&d.price, &d.weights[i])
		d.quotient.QuoRem(&d.product, &d.all, &d.remainders[i])
		parts = append(parts, d.quotient.Int64())
		left -= parts[i]
		if d.remainders[i].Sign() > 0 {
			d.order = append(d.order, i)
		}
	}
	if left > 0 { // fewer than there are remainders
		slices.SortStableFunc(d.order, func(a, b int) int { return d.remainders[b].Cmp(&d.remainders[a]) })
		for _, i := range d.order[:left] {
			parts[i]++
		}
	}
	return parts
}

// weigh sets the weights of the node's pods and of the rest, and all, which is their sum.
func (d *divider) weigh(n *model.Node) {
	parts := len(n.Pods) + 1
	d.weights, d.remainders = slices.Grow(d.weights[:0], parts)[:parts], slices.Grow(d.remainders[:0], parts)[:parts]
	d.scale(n)
	d.sum.SetInt64(0)
	for i, p := range n.Pods {
		weight := d.weights[i].SetInt64(0)
		clear(d.use)
		p.AddUse(d.use, 1)
		for f, r := range d.priced {
			if asks := d.use.At(r); asks > 0 && d.factors[f].Sign() > 0 {
				d.product.Mul(d.quotient.SetInt64(asks), &d.factors[f])
				if d.product.Cmp(weight) > 0 {
					weight.Set(&d.product)
				}
			}
		}
		d.sum.Add(&d.sum, weight)
	}
	rest := d.weights[len(n.Pods)].SetInt64(0)
	d.all.Set(&d.sum)
	if d.whole.Cmp(&d.sum) > 0 {
		rest.Sub(&d.whole, &d.sum)
		d.all.Set(&d.whole)
	}
}

// scale sets whole to the product of the node's amounts, and each factor to the product of the other amounts: a pod that
// requests the whole of one amount then weighs as much as the node. An amount that the node lacks has the factor 0.
func (d *divider) scale(n *model.Node) {
	d.whole.SetInt64(1)
	for _, r := range d.priced {
		if has := n.Usable.At(r); has > 0 {
			d.whole.Mul(&d.whole, d.quotient.SetInt64(has))
		}
	}
	for f, r := range d.priced {
		d.factors[f].SetInt64(0)
		if has := n.Usable.At(r); has > 0 {
			d.factors[f].Quo(&d.whole, d.quotient.SetInt64(has))
		}
	}
}
