package kubelet

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Config holds the contents of a machine's user data.
type Config struct {
	Cluster   string // name
	Endpoint  string // URL of the API server
	Authority string // PEM in base64
	Labels    map[string]string
	Taints    []corev1.Taint
	// MaxPods is 0 if the image determines it.
	MaxPods int64
	// KubeReserved, SystemReserved and EvictionHard are those of the kubelet's configuration.
	KubeReserved, SystemReserved, EvictionHard map[string]string
}

// Read parses user data like an image of the family (al2, al2023, bottlerocket, windows2019, windows2022,
// windows2025). An error is the reason why the machine
// would not join a cluster.
func Read(family string, text []byte) (Config, error) {
	c := Config{Labels: map[string]string{}}
	text, err := decompressed(family, text)
	if err != nil {
		return c, err
	}
	switch family {
	case "al2023":
		err = c.nodeadm(text)
	case "al2":
		err = c.bootstrap(text)
	case "bottlerocket":
		err = c.bottlerocket(text)
	case "windows2019", "windows2022", "windows2025":
		err = c.powershell(text)
	default:
		return c, fmt.Errorf("it is unknown what an image of family %q does with its user data", family)
	}
	if err != nil {
		return c, err
	}
	return c, c.check()
}

func (c *Config) check() error {
	if c.Cluster == "" || c.Endpoint == "" || c.Authority == "" {
		return errors.New("the name, endpoint or certificate authority of the cluster is missing")
	}
	for key, value := range c.Labels {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("label %s=%s: %s", key, value, strings.Join(problems, ", "))
		}
		if forbidden(key) {
			return fmt.Errorf("label %s: a kubelet must not give it to its own node", key)
		}
	}
	for _, amounts := range []map[string]string{c.KubeReserved, c.SystemReserved} {
		for name, amount := range amounts {
			if _, err := resource.ParseQuantity(amount); err != nil {
				return fmt.Errorf("reserved %s is %q: %w", name, amount, err)
			}
		}
	}
	return nil
}

// ownLabels matches Kubernetes labels that a kubelet may set on its own node.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
var ownLabels = regexp.MustCompile(`^(kubernetes\.io/(hostname|arch|os)|beta\.kubernetes\.io/(instance-type|os|arch)|node\.kubernetes\.io/instance-type|(failure-domain\.beta|topology)\.kubernetes\.io/(zone|region)|(kubelet|node)\.kubernetes\.io/.*)$`)

var reservedLabels = regexp.MustCompile(`^([^/]+\.)?(kubernetes|k8s)\.io/`)

func forbidden(key string) bool {
	return reservedLabels.MatchString(key) && !ownLabels.MatchString(key)
}

// flag parses one of the kubelet's flags, --name=value.
func (c *Config) flag(text string) error {
	name, value, cut := strings.Cut(text, "=")
	if !cut || !strings.HasPrefix(name, "--") {
		return fmt.Errorf("flag %q of the kubelet: want --name=value", text)
	}
	switch name {
	case "--node-labels":
		for pair := range strings.SplitSeq(value, ",") {
			key, value, cut := strings.Cut(pair, "=")
			if !cut {
				return fmt.Errorf("--node-labels has %q: want key=value", pair)
			}
			c.Labels[key] = value
		}
	case "--register-with-taints":
		for item := range strings.SplitSeq(value, ",") {
			taint, err := taintOf(item)
			if err != nil {
				return fmt.Errorf("--register-with-taints: %w", err)
			}
			c.Taints = append(c.Taints, taint)
		}
	case "--max-pods":
		pods, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("--max-pods is %q: want a number", value)
		}
		c.MaxPods = pods
	case "--kube-reserved":
		c.KubeReserved = pairs(value, "=")
	case "--system-reserved":
		c.SystemReserved = pairs(value, "=")
	case "--eviction-hard":
		c.EvictionHard = pairs(value, "<")
	case "--eviction-soft", "--eviction-soft-grace-period", "--eviction-max-pod-grace-period", "--image-gc-high-threshold",
		"--image-gc-low-threshold",
		"--cpu-cfs-quota", "--pods-per-core":
	default:
		return fmt.Errorf("flag %s of the kubelet is not known", name)
	}
	return nil
}

// taintOf parses key=value:effect or key:effect.
func taintOf(text string) (corev1.Taint, error) {
	of, effect, cut := strings.Cut(text, ":")
	key, value, _ := strings.Cut(of, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	switch taint.Effect {
	case corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule:
	default:
		cut = false
	}
	if !cut || key == "" {
		return taint, fmt.Errorf("taint %q: want key=value:effect", text)
	}
	return taint, nil
}

func pairs(text, separator string) map[string]string {
	list := map[string]string{}
	for item := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(item, separator)
		list[key] = value
	}
	return list
}
