package instance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
)

// Resolved holds the results of a class's expressions for one type, as the text that nodes of the type are configured
// with. It is empty if the class has no expressions.
type Resolved struct {
	// KubeReserved and SystemReserved are amounts in the order of the resources, such as cpu=120m,memory=272Mi.
	KubeReserved, SystemReserved string
	// Volumes are sizes in GiB in the order of the devices, such as /dev/xvda=120.
	Volumes string
}

// Entries returns the amounts in one of the texts by resource.
func Entries(text string) map[string]string {
	entries := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if name, amount, ok := strings.Cut(pair, "="); ok {
			entries[name] = amount
		}
	}
	return entries
}

// formula is an expression of a class.
type formula struct {
	// field is its path in the class, and name the resource or device that it is for.
	field, name string
	program     *expression.Program
	// failed means that the expression had no result for a type. It is not evaluated for the types after it: the class is
	// not ready, and an evaluation may take as long as the limit allows.
	failed bool
}

// formulas are the expressions of a class.
type formulas struct {
	pods, kube, system, volumes []*formula // at most one for the number of pods
	// failure is the first expression without a valid result, with the type.
	failure string
}

func newFormulas(class *Class, settings *Settings) formulas {
	f := formulas{volumes: settings.compiled("metadata.annotations["+awsv1.AnnotationVolumeSize+"]", class.VolumeSizes)}
	if !settings.KubeletExpressions {
		return f
	}
	k := &class.Kubelet
	if k.MaxPodsExpression != "" {
		f.pods = append(f.pods, settings.compiled("spec.kubelet.maxPods", map[string]string{pods: k.MaxPodsExpression})...)
	}
	f.kube = settings.compiled("spec.kubelet.kubeReserved", k.KubeExpressions)
	f.system = settings.compiled("spec.kubelet.systemReserved", k.SystemExpressions)
	return f
}

// compiled returns the expressions in the order of their names. Invalid ones are omitted; a condition of the class has the
// reason.
func (s *Settings) compiled(field string, texts map[string]string) []*formula {
	compile := expression.Compile
	if s.Programs != nil {
		compile = s.Programs.Program
	}
	var list []*formula
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		program, err := compile(texts[name])
		if err != nil {
			continue
		}
		f := &formula{field: field, name: name, program: program}
		if name != pods {
			f.field += "." + name
		}
		list = append(list, f)
	}
	return list
}

func (f *formulas) none() bool {
	return len(f.pods) == 0 && len(f.kube) == 0 && len(f.system) == 0 && len(f.volumes) == 0
}

// number evaluates an expression. It returns false if it has no result that is at least least.
func (f *formulas) number(of *formula, v expression.Variables, least int64) (result int64, ok bool) {
	if of.failed {
		return 0, false
	}
	result, err := of.program.Number(v)
	switch {
	case err != nil:
		of.failed = true
		f.fail(of, v, err.Error())
	case result < least:
		f.fail(of, v, fmt.Sprintf("the result is %d, want %d or more", result, least))
	default:
		return result, true
	}
	return 0, false
}

func (f *formulas) fail(of *formula, v expression.Variables, why string) {
	if f.failure == "" {
		f.failure = fmt.Sprintf("%s: for %s: %s", of.field, v.InstanceType, why)
	}
}

// resolve evaluates the expressions of the class for a type. It returns the class and the reservations as they are for
// nodes of the type. An expression without a valid result counts as unset.
func (b *builder) resolve(t *catalog.Type) (*Class, *reservations, Resolved) {
	if b.formulas.none() {
		return b.class, &b.reserved, Resolved{}
	}
	class, reserved := *b.class, b.reserved
	v := expression.Variables{
		InstanceType: t.Name, VCPUs: t.VCPUs, MemoryMiB: t.MemoryMiB, IPsPerENI: t.IPv4PerENI,
		DefaultENIs: max(0, t.PrimaryENIs()-b.settings.ReservedENIs-class.efaOnlyOnCard0()),
		MaxPods:     class.unlimitedPods(t, &b.family, b.settings),
	}
	for _, of := range b.formulas.pods {
		if n, ok := b.formulas.number(of, v, math.MinInt64); ok { // an expression may be negative for the smallest types

			n = max(0, n)
			class.Kubelet.MaxPods = &n
		}
	}
	v.MaxPods = class.pods(t, &b.family, b.settings)
	var made Resolved
	reserved.kube, made.KubeReserved = b.reserve(b.formulas.kube, v, reserved.kube)
	reserved.system, made.SystemReserved = b.reserve(b.formulas.system, v, reserved.system)
	class.Sizes, made.Volumes = b.sizes(v)
	return &class, &reserved, made
}

const (
	// volumeStep is the multiple in GiB that sizes are rounded up to, so that types of similar size share a launch template.
	volumeStep = 10
	// mostVolume is the size in GiB of the largest EBS volume
	// (https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html).
	mostVolume = 65536
)

// sizes returns the sizes of volumes in bytes by device, and these in GiB as text.
func (b *builder) sizes(v expression.Variables) (bytes map[string]int64, text string) {
	if len(b.formulas.volumes) == 0 {
		return nil, ""
	}
	bytes = map[string]int64{}
	var pairs []string
	for _, of := range b.formulas.volumes {
		n, ok := b.formulas.number(of, v, 1)
		if !ok {
			continue
		}
		if n > mostVolume {
			b.formulas.fail(of, v, fmt.Sprintf("the result is %d GiB, want %d or less", n, mostVolume))
			continue
		}
		n = min(roundUp(n, volumeStep), mostVolume)
		bytes[of.name] = n * giB
		pairs = append(pairs, of.name+"="+strconv.FormatInt(n, 10))
	}
	return bytes, strings.Join(pairs, ",")
}

// reserve returns the reserved amounts, in the units of cloud.InstanceType, with the results of expressions, and these as
// text.
func (b *builder) reserve(list []*formula, v expression.Variables, fixed map[string]int64) (amounts map[string]int64, text string) {
	if len(list) == 0 {
		return fixed, ""
	}
	amounts = maps.Clone(fixed)
	var pairs []string
	for _, of := range list {
		n, ok := b.formulas.number(of, v, 0)
		if !ok {
			continue
		}
		unit := reservedUnits[of.name]
		n = roundUp(n, unit.step)
		if unit.bytes > 0 {
			amounts[of.name] = n * unit.bytes
		}
		pairs = append(pairs, of.name+"="+strconv.FormatInt(n, 10)+unit.suffix)
	}
	return amounts, strings.Join(pairs, ",")
}

// reservedUnits are the units of results, and the steps that they are rounded up to, so that types of similar size share
// a launch template. Process IDs (pid) are no resource of a node.
var reservedUnits = map[string]struct {
	suffix      string
	step, bytes int64
}{
	cpu:              {"m", 10, 1},
	memory:           {"Mi", 16, miB},
	ephemeralStorage: {"Gi", 1, giB},
	"pid":            {"", 1, 0},
}

func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }
