package migrate

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/legacy/settings"
)

// This file migrates values of the Helm chart. The chart charts/karpenter itself accepts older names
// (templates/_read.tpl) and reports those that it does not accept. The tables here equal those of the chart, and a
// test compares them.

// renamedValue is a value with another name now. A value under the old name replaces its default in the chart, given
// as YAML.
type renamedValue struct{ old, today, otherwise string }

var renamedValues = []renamedValue{
	{"settings.aws.clusterName", "settings.clusterName", `""`},
	{"clusterName", "settings.clusterName", `""`},
	{"controller.clusterName", "settings.clusterName", `""`},
	{"settings.aws.clusterEndpoint", "settings.clusterEndpoint", `""`},
	{"clusterEndpoint", "settings.clusterEndpoint", `""`},
	{"controller.clusterEndpoint", "settings.clusterEndpoint", `""`},
	{"settings.aws.clusterCABundle", "settings.clusterCABundle", `""`},
	{"settings.aws.isolatedVPC", "settings.isolatedVPC", `false`},
	{"settings.aws.vmMemoryOverheadPercent", "settings.vmMemoryOverheadPercent", `0.075`},
	{"settings.aws.interruptionQueueName", "settings.interruptionQueue", `""`},
	{"settings.interruptionQueueName", "settings.interruptionQueue", `""`},
	{"settings.aws.reservedENIs", "settings.reservedENIs", `"0"`},
	{"settings.aws.defaultInstanceProfile", "settings.defaultInstanceProfile", `""`},
	{"aws.defaultInstanceProfile", "settings.defaultInstanceProfile", `""`},
	{"controller.batchMaxDuration", "settings.batchMaxDuration", `10s`},
	{"controller.batchIdleDuration", "settings.batchIdleDuration", `1s`},
	{"controller.logLevel", "logLevel", `info`},
	{"logConfig.logLevel.controller", "logLevel", `info`},
	{"logConfig.logLevel.global", "logLevel", `info`},
	{"controller.logEncoding", "logEncoding", `json`},
	{"logConfig.logEncoding", "logEncoding", `json`},
	{"controller.outputPaths", "logOutputPaths", `[stdout]`},
	{"logConfig.outputPaths", "logOutputPaths", `[stdout]`},
	{"controller.errorOutputPaths", "logErrorOutputPaths", `[stderr]`},
	{"logConfig.errorOutputPaths", "logErrorOutputPaths", `[stderr]`},
	{"controller.replicas", "replicas", `2`},
}

// goneValue is a value that has no effect, or is set elsewhere.
type goneValue struct{ old, why string }

const driftIsOn = `drift is always on; a budget of nodes "0" with reasons [Drifted] keeps a NodePool's nodes`

// goneValues contains those without a meaning.
var goneValues = []goneValue{
	{"settings.aws.enablePodENI", "network interfaces of pods are always supported"},
	{"settings.aws.nodeNameConvention", "the image determines the name of the node"},
	{"settings.aws.assumeRoleDuration", "no role is assumed"},
	{"settings.assumeRoleDuration", "no role is assumed"},
	{"settings.featureGates.driftEnabled", driftIsOn},
	{"settings.featureGates.drift", driftIsOn},
	{"webhook", "the only webhook converts older versions of the API (conversion.enabled)"},
}

// movedValues contains those that are set elsewhere, and the required action.
var movedValues = []goneValue{
	{"settings.aws.assumeRoleARN", `set the role in serviceAccount.annotations.eks\.amazonaws\.com/role-arn, or use EKS Pod Identity`},
	{"settings.assumeRoleARN", `set the role in serviceAccount.annotations.eks\.amazonaws\.com/role-arn, or use EKS Pod Identity`},
	{"settings.aws.tags", "set spec.tags of every EC2NodeClass"},
	{"settings.tags", "set spec.tags of every EC2NodeClass"},
	{"settings.aws.enableENILimitedPodDensity", "set spec.kubelet.maxPods: 110 in every EC2NodeClass"},
}

// onlyOfKarpenter contains values that only charts of Karpenter have, in addition to those below settings.aws. Names
// such as controller, webhook, serviceAccount, replicas or clusterName alone are common in other charts.
var onlyOfKarpenter = []string{
	"settings.clusterName", "settings.clusterEndpoint", "settings.clusterCABundle", "settings.interruptionQueue", "settings.isolatedVPC",
	"settings.reservedENIs", "settings.vmMemoryOverheadPercent", "settings.defaultInstanceProfile",
	"settings.interruptionQueueName", "settings.batchMaxDuration", "settings.batchIdleDuration",
	"settings.preferencePolicy", "settings.minValuesPolicy", "settings.eksControlPlane", "settings.featureGates.nodeRepair",
	"settings.featureGates.nodeOverlay", "settings.featureGates.reservedCapacity", "settings.featureGates.staticCapacity",
	"settings.featureGates.capacityBuffer",
	"settings.honorSafeToEvict", "settings.featureGates.driftEnabled", "settings.featureGates.drift",
	"settings.featureGates.spotToSpotConsolidation",
	"controller.clusterName", "controller.clusterEndpoint", "controller.batchMaxDuration", "controller.batchIdleDuration",
	"aws.defaultInstanceProfile",
}

// ownSettings returns the names below settings that only charts of Karpenter have.
func ownSettings() []string {
	var names []string
	for _, path := range onlyOfKarpenter {
		if name, found := strings.CutPrefix(path, "settings."); found && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// isValues reports whether a document is a file of values for the chart. It must have a value that only charts of
// Karpenter have, because unknown parts are removed. Other values are passed through unchanged.
func isValues(root *yaml.Node) bool {
	if root == nil || at(root, "apiVersion") != nil || at(root, "kind") != nil {
		return false
	}
	if at(root, "clusterName") != nil && at(root, "clusterEndpoint") != nil {
		return true
	}
	for _, path := range [][]string{{"controller", "image"}, {"controller", "image", "repository"}} {
		if image := text(at(root, path...)); foreignImage.MatchString(image) || copiedImage.MatchString(image) {
			return true
		}
	}
	if slices.ContainsFunc(fields(at(root, "settings")), func(name string) bool { return explain.Nearest(name, ownSettings()) != "" }) {
		return true // misspelled
	}
	has := func(path string) bool { return at(root, strings.Split(path, ".")...) != nil }
	return slices.ContainsFunc(onlyOfKarpenter, has) ||
		slices.ContainsFunc(renamedValues, func(row renamedValue) bool { return strings.HasPrefix(row.old, "settings.aws.") && has(row.old) }) ||
		slices.ContainsFunc(slices.Concat(goneValues, movedValues),
			func(row goneValue) bool { return strings.HasPrefix(row.old, "settings.aws.") && has(row.old) })
}

// valuesIn returns the values for the chart in a document, and the key above them: "" if they are the whole document,
// or the name of the chart in values of a chart that depends on it. It returns nil if there are none.
func valuesIn(root *yaml.Node) (*yaml.Node, string) {
	if isValues(root) {
		return root, ""
	}
	if below := at(root, chartName); isValues(below) && at(root, "apiVersion") == nil && at(root, "kind") == nil {
		return below, chartName
	}
	return nil, ""
}

// values replaces old names in the values of one document, and returns the information about the cluster in them.
func (r *repair) values() known {
	found := readSettings(r.root)
	for _, row := range renamedValues {
		r.renamedValue(row)
	}
	for _, row := range goneValues {
		if value := r.takeValue(row.old); value != nil && value.Tag != "!!null" {
			r.note(Changed, row.old, "has no effect; omitted; %s", row.why)
		}
	}
	for _, row := range movedValues {
		value := r.takeValue(row.old)
		switch {
		case empty(value) || text(value) == "" && value.Kind == yaml.ScalarNode:
		case row.old == "settings.aws.enableENILimitedPodDensity" && text(value) == "true": // the only supported behavior
		case strings.HasSuffix(row.old, "tags"), strings.HasSuffix(row.old, "PodDensity"):
			r.note(Changed, row.old, "is no longer a value of the chart; omitted; it is added to objects of older versions in the input; "+
				"for all others, %s", row.why)
		default:
			r.note(Impossible, row.old, "is not migrated; %s", row.why)
		}
	}
	r.queue()
	r.image()
	r.unsupported()
	for _, path := range [][]string{{"settings", "aws"}, {"settings", "featureGates"}, {"aws"}, {"logConfig", "logLevel"},
		{"logConfig"}, {"controller"}} {
		prune(r.root, path...)
	}
	if config := r.takeValue("logConfig"); config != nil {
		r.note(Changed, "logConfig", "has no effect; omitted; logLevel, logEncoding, logOutputPaths and logErrorOutputPaths replace it")
	}
	return found
}

// takeValue removes a value and returns it, or nil if the path does not exist.
func (r *repair) takeValue(path string) *yaml.Node {
	value := take(r.root, strings.Split(path, ".")...)
	if value != nil {
		r.anew = true
	}
	return value
}

func (r *repair) renamedValue(row renamedValue) {
	value := r.takeValue(row.old)
	if value == nil || value.Tag == "!!null" || value.Kind == yaml.ScalarNode && value.Value == "" {
		return
	}
	otherwise := document{text: row.otherwise}
	if otherwise.parse() != nil {
		otherwise.root = nil // the table is part of the program: a test parses every row
	}
	switch today := r.find(row.today); {
	case today == nil || today.Tag == "!!null" || today.Kind == yaml.ScalarNode && today.Value == "" || same(today, otherwise.root):
		put(r.root, value, strings.Split(row.today, ".")...)
		r.note(Changed, row.old, "is renamed to %s", row.today)
	case same(today, value):
		r.note(Changed, row.old, "is renamed to %s, which has the same value; omitted", row.today)
	default:
		r.note(Changed, row.old, "is renamed to %s, which has another value; omitted", row.today)
	}
}

// queue handles the switch that v0.19 had next to the name of the queue.
func (r *repair) queue() {
	const path = "settings.aws.enableInterruptionHandling"
	value := r.takeValue(path)
	if text(value) != "true" {
		return
	}
	if text(r.find("settings.interruptionQueue")) == "" {
		r.note(Impossible, path, "is not migrated; set settings.interruptionQueue to the name of the queue")
		return
	}
	r.note(Changed, path, "has no effect; omitted; settings.interruptionQueue replaces it")
}

var (
	foreignImage = regexp.MustCompile(`^public\.ecr\.aws/karpenter/`)
	copiedImage  = regexp.MustCompile(`(^|/)karpenter/controller([:@].*)?$`)
	// foreignTag matches versions of Karpenter from v0.5 on. This project has no such version.
	foreignTag = regexp.MustCompile(`^v?(0\.([5-9]|[1-3][0-9])|1\.[0-9]+)\.[0-9]+(-|$)`)
)

// image removes images of other programs. That of a mirror may be the right one under a name of its own.
func (r *repair) image() {
	image := r.find("controller.image")
	if image == nil {
		return
	}
	repository := text(at(image, "repository"))
	isTag := image.Kind == yaml.MappingNode && repository == "" && foreignTag.MatchString(text(at(image, "tag")))
	if image.Kind == yaml.MappingNode && !foreignImage.MatchString(repository) && !isTag {
		if repository == "" && text(at(image, "digest")) != "" {
			r.note(Advice, "controller.image.digest", "is that of an image of this chart's default repository; remove it if it is that of another program")
		}
		if copiedImage.MatchString(repository) {
			r.note(Impossible, "controller.image.repository", "is %q, a copy of another program's image, which the chart refuses; set it to "+
				"your copy of karpenter-go/karpenter, and remove tag and digest or set them to those of the copy", repository)
		}
		return
	}
	r.takeValue("controller.image")
	r.note(Changed, "controller.image", "is the image of another program; omitted, because the chart has its own image")
}

// unsupported notes values that turn on what does not exist yet, which the chart refuses.
func (r *repair) unsupported() {
	if text(r.find("settings.ignoreDRARequests")) == "false" {
		r.note(Impossible, "settings.ignoreDRARequests", "is false, which is not supported here yet, and the chart refuses it; remove it")
	}
}

// known contains what older versions read from values or the ConfigMap, as input for the translation of their
// objects.
type known struct {
	clusterName, clusterEndpoint string
	defaultInstanceProfile       string
	tags                         map[string]string
	allPods                      bool // enableENILimitedPodDensity is false: 110 pods on each node
	drift                        bool
}

// readSettings returns the information about the cluster in values of any chart.
func readSettings(root *yaml.Node) known {
	first := func(paths ...string) string {
		for _, path := range paths {
			if value := text(at(root, strings.Split(path, ".")...)); value != "" {
				return value
			}
		}
		return ""
	}
	s := known{
		clusterName: first("settings.clusterName", "settings.aws.clusterName", "clusterName", "controller.clusterName"),
		clusterEndpoint: first("settings.clusterEndpoint", "settings.aws.clusterEndpoint", "clusterEndpoint",
			"controller.clusterEndpoint"),
		defaultInstanceProfile: first("settings.defaultInstanceProfile", "settings.aws.defaultInstanceProfile", "aws.defaultInstanceProfile"),
		allPods:                first("settings.aws.enableENILimitedPodDensity") == "false",
		drift:                  first("settings.featureGates.driftEnabled", "settings.featureGates.drift") == "true",
	}
	for _, path := range []string{"settings.aws.tags", "settings.tags"} {
		node := at(root, strings.Split(path, ".")...)
		for _, name := range fields(node) {
			if s.tags == nil {
				s.tags = map[string]string{}
			}
			s.tags[name] = text(at(node, name))
		}
	}
	return s
}

// over returns the known values, and those of another source for the others.
func (s known) over(other known) known {
	pick := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	s.clusterName, s.clusterEndpoint = pick(s.clusterName, other.clusterName), pick(s.clusterEndpoint, other.clusterEndpoint)
	s.defaultInstanceProfile = pick(s.defaultInstanceProfile, other.defaultInstanceProfile)
	if s.tags == nil {
		s.tags = other.tags
	}
	s.allPods, s.drift = s.allPods || other.allPods, s.drift || other.drift
	return s
}

// GlobalSettings is the name of the ConfigMap with the controller's settings from v0.19 to v0.32.
const GlobalSettings = settings.ConfigMap

// isSettings reports whether a document is that ConfigMap.
func isSettings(root *yaml.Node) bool {
	return text(at(root, "apiVersion")) == "v1" && text(at(root, "kind")) == "ConfigMap" && text(at(root, "metadata",
		"name")) == GlobalSettings
}

// valuesOf converts the ConfigMap's data to values, with the chart's names.
func valuesOf(data *yaml.Node) *yaml.Node {
	root := mapping()
	for _, key := range fields(data) {
		value := at(data, key)
		comment := value.LineComment
		if strings.HasPrefix(key, settings.TagPrefix) {
			continue
		}
		set(root, typed(key, value.Value), append([]string{"settings"}, strings.Split(key, ".")...)...)
		at(root, append([]string{"settings"}, strings.Split(key, ".")...)...).LineComment = comment
	}
	for _, key := range fields(data) {
		if tag, found := strings.CutPrefix(key, settings.TagPrefix); found {
			set(root, scalar(at(data, key).Value), "settings", "aws", "tags", tag)
		}
	}
	return root
}

// typed converts a text of the ConfigMap to the chart's type.
func typed(key, value string) *yaml.Node {
	switch last := key[strings.LastIndexByte(key, '.')+1:]; last {
	case "tags":
		var tags map[string]string
		if json.Unmarshal([]byte(value), &tags) == nil {
			if node, err := nodeOf(tags); err == nil {
				return node
			}
		}
	case "isolatedVPC", "enablePodENI", "enableENILimitedPodDensity", "enableInterruptionHandling", "driftEnabled":
		if value == "true" || value == "false" {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: value}
		}
	case "vmMemoryOverheadPercent":
		if _, err := json.Number(value).Float64(); err == nil {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: value}
		}
	case "reservedENIs":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
	}
	return scalar(value)
}
