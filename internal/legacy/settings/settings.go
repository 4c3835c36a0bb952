package settings

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ConfigMap is the name of the ConfigMap, in the controller's namespace.
const ConfigMap = "karpenter-global-settings"

// Old contains the settings with old names. The zero value is empty.
type Old struct {
	// Settings are values of current flags, by flag.
	Settings []Setting
	// Notes are lines for the log: one for each old name that has or had a meaning, by name.
	Notes []string
	// Cluster contains the input for objects from before v1beta1 only.
	Cluster Cluster
	// Mistakes are values that cannot be parsed, by name. They have no effect on the other fields.
	Mistakes []Mistake
	// Unknown are names that never had a meaning, and may be misspelled.
	Unknown []string
}

// Mistake is a value that cannot be parsed.
type Mistake struct {
	// From is the old name, such as aws.reservedENIs.
	From string
	// Flag is the current flag for the same setting, empty if there is none.
	Flag string
	// Idle means that the value is no longer used.
	Idle bool
	// Problem contains the value and the expected form.
	Problem string
}

// Error returns the setting, its value and the expected form.
func (m Mistake) Error() string { return m.From + " " + m.Problem }

// Setting is the value of one current flag.
type Setting struct {
	// Flag is its name, such as cluster-name. Its variable is CLUSTER_NAME.
	Flag string
	// Value is in the notation of the flag.
	Value string
	// From is the old name, such as aws.clusterName, or AWS_ISOLATED_VPC.
	From string
}

// Cluster contains what all Provisioners and AWSNodeTemplates of a cluster had in common.
type Cluster struct {
	// Tags are those of all instances.
	Tags map[string]string
	// ManyPods is set if aws.enableENILimitedPodDensity was "false": nodes accepted 110 pods, regardless of their
	// interfaces.
	ManyPods bool
	// Drift is set if featureGates.driftEnabled was "true": nodes that differ from their Provisioner were replaced.
	Drift bool
}

// row is the current equivalent of an old name.
type row struct {
	// flag is the current flag, empty if there is none. advice then contains the required action.
	flag, advice string
	// read checks a value and returns it in the notation of the current flag.
	read reader
	// quiet is the value that equals the current behavior and needs no note.
	quiet string
	// keep stores the input for objects from before v1beta1.
	keep func(c *Cluster, value string)
}

// reader converts a value to the notation of the current flag. ok is false if the value is not what want describes.
type reader struct {
	want  string
	spell func(value string) (today string, ok bool)
}

var (
	text     = reader{"a string", func(v string) (string, bool) { return v, true }}
	duration = reader{"a duration above zero such as 10s", func(v string) (string, bool) {
		d, err := time.ParseDuration(v)
		return v,
			err == nil && d > 0
	}}
	boolean  = reader{"true or false", func(v string) (string, bool) { return v, v == "true" || v == "false" }}
	inverted = reader{"true or false", func(v string) (string, bool) {
		return map[string]string{"true": "false", "false": "true"}[v], v == "true" || v == "false"
	}}
	fraction = reader{"0 or more and less than 1, such as 0.075", func(v string) (string, bool) {
		f, err := strconv.ParseFloat(v, 64)
		return v, err == nil && f >= 0 && f < 1
	}}
	count = reader{"an integer, 0 or more", func(v string) (string, bool) { n, err := strconv.ParseInt(v, 10, 64); return v, err == nil && n >= 0 }}
	url   = reader{"a URL that begins with https://", func(v string) (string, bool) { return v, strings.HasPrefix(v, "https://") }}
	coded = reader{"PEM in base64", func(v string) (string, bool) { _, err := base64.StdEncoding.DecodeString(v); return v, err == nil }}
	pairs = reader{`a JSON object of strings such as {"team":"a"}`, func(v string) (string, bool) {
		var tags map[string]string
		return v, json.Unmarshal([]byte(v), &tags) == nil
	}}
)

// classes is the prefix of advice about settings that now belong to every node class.
const classes = "each EC2NodeClass sets it: "

var ofConfigMap = map[string]row{
	"batchMaxDuration":            {flag: "batch-max-duration", read: duration},
	"batchIdleDuration":           {flag: "batch-idle-duration", read: duration},
	"aws.clusterName":             {flag: "cluster-name", read: text},
	"aws.clusterEndpoint":         {flag: "cluster-endpoint", read: url},
	"aws.clusterCABundle":         {flag: "cluster-ca-bundle", read: coded},
	"aws.isolatedVPC":             {flag: "isolated-vpc", read: boolean},
	"aws.vmMemoryOverheadPercent": {flag: "vm-memory-overhead-percent", read: fraction},
	"aws.interruptionQueueName":   {flag: "interruption-queue", read: text},
	"aws.reservedENIs":            {flag: "reserved-enis", read: count},
	"featureGates.driftEnabled":   {advice: `drift is always on; a budget of nodes "0" with reasons [Drifted] keeps a NodePool's nodes`, read: boolean, quiet: "true", keep: func(c *Cluster, v string) { c.Drift = v == "true" }},
	"aws.enablePodENI":            {advice: "network interfaces of pods are always supported", read: boolean, quiet: "true"},
	"aws.enableInterruptionHandling": {advice: "interruption notices are read if a queue is set (interruption-queue)", read: boolean,
		quiet: "true"},
	"aws.nodeNameConvention":         {advice: "the image determines the name of the node", read: text},
	"aws.assumeRoleARN":              {advice: "no role is assumed; give it to the service account (EKS Pod Identity, or eks.amazonaws.com/role-arn)", read: text},
	"aws.assumeRoleDuration":         {advice: "no role is assumed", read: duration},
	"aws.defaultInstanceProfile":     {flag: "default-instance-profile", read: text},
	"aws.enableENILimitedPodDensity": {advice: classes + "spec.kubelet.maxPods: 110", read: boolean, quiet: "true", keep: density},
	"aws.tags":                       {advice: classes + "spec.tags", read: pairs, quiet: "{}", keep: tags},
}

var ofEnvironment = map[string]row{
	"LEADER_ELECT":                 {flag: "disable-leader-election", read: inverted},
	"AWS_ISOLATED_VPC":             {flag: "isolated-vpc", read: boolean},
	"VM_MEMORY_OVERHEAD":           {flag: "vm-memory-overhead-percent", read: fraction},
	"AWS_DEFAULT_INSTANCE_PROFILE": {flag: "default-instance-profile", read: text},
	"AWS_ENI_LIMITED_POD_DENSITY":  {advice: classes + "spec.kubelet.maxPods: 110", read: boolean, quiet: "true", keep: density},
	"AWS_ENABLE_POD_ENI":           {advice: "network interfaces of pods are always supported", read: boolean, quiet: "true"},
	"AWS_NODE_NAME_CONVENTION":     {advice: "the image determines the name of the node", read: text},
	"ASSUME_ROLE_ARN":              {advice: "no role is assumed; give it to the service account (EKS Pod Identity, or eks.amazonaws.com/role-arn)", read: text},
	"ASSUME_ROLE_DURATION":         {advice: "no role is assumed", read: duration},
	"LOGGING_CONFIG":               {advice: "see LOG_LEVEL, LOG_ENCODING, LOG_OUTPUT_PATHS and LOG_ERROR_OUTPUT_PATHS", read: text},
}

func density(c *Cluster, v string) { c.ManyPods = v == "false" }

func tags(c *Cluster, v string) {
	_ = json.Unmarshal([]byte(v), &c.Tags) // it has been parsed before
}

// TagPrefix was the prefix of a tag's key until v0.24.
const TagPrefix = "aws.tags."

// FromConfigMap returns the settings in the data of the ConfigMap. Empty values count as absent.
func FromConfigMap(data map[string]string) Old {
	return read(data, ofConfigMap, "ConfigMap "+ConfigMap+": ")
}

// FromEnvironment returns the settings in variables with old names. It calls lookup for each. Empty values count as
// absent.
func FromEnvironment(lookup func(name string) string) Old {
	given := map[string]string{}
	for name := range ofEnvironment {
		given[name] = lookup(name)
	}
	return read(given, ofEnvironment, "environment variable ")
}

func read(given map[string]string, table map[string]row, where string) Old {
	var old Old
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		row, known := table[name]
		switch key, isTag := strings.CutPrefix(name, TagPrefix); {
		case value == "":
		case isTag && !known:
			old.Notes = append(old.Notes, where+name+" has no counterpart: "+classes+"spec.tags")
			old.Cluster.tag(key, value)
		case !known:
			old.Notes = append(old.Notes, where+name+" is not known and ignored")
			old.Unknown = append(old.Unknown, name)
		default:
			old.add(name, value, row, where)
		}
	}
	slices.SortFunc(old.Settings, func(a, b Setting) int {
		return cmp.Or(strings.Compare(a.Flag, b.Flag), strings.Compare(a.From, b.From))
	})
	return old
}

func (old *Old) add(name, value string, row row, where string) {
	today, ok := row.read.spell(value)
	if !ok {
		problem := fmt.Sprintf("is %q, want %s", value, row.read.want)
		old.Mistakes = append(old.Mistakes, Mistake{From: name, Flag: row.flag, Idle: row.flag == "" && row.keep == nil, Problem: problem})
		return
	}
	if row.keep != nil {
		row.keep(&old.Cluster, value)
	}
	switch {
	case row.flag != "":
		old.Settings = append(old.Settings, Setting{Flag: row.flag, Value: today, From: name})
		old.Notes = append(old.Notes, fmt.Sprintf("%s%s is renamed to %s (settings.%s of the chart)", where, name, Variable(row.flag), chartValue(row.flag)))
	case value != row.quiet:
		old.Notes = append(old.Notes, where+name+" has no counterpart: "+row.advice)
	}
}

func (c *Cluster) tag(key, value string) {
	if c.Tags == nil {
		c.Tags = map[string]string{}
	}
	c.Tags[key] = value
}

// Variable returns the environment variable of a flag.
func Variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// chartValues contains values of the chart whose spelling differs from that of their flags.
var chartValues = map[string]string{
	"cluster-ca-bundle": "clusterCABundle", "isolated-vpc": "isolatedVPC", "reserved-enis": "reservedENIs",
	"vm-memory-overhead-percent": "vmMemoryOverheadPercent",
}

// chartValue returns the chart's name of a flag, below settings.
func chartValue(flag string) string {
	if value, other := chartValues[flag]; other {
		return value
	}
	words := strings.Split(flag, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}
