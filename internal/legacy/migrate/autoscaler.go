package migrate

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// This file handles the Cluster Autoscaler: its flags
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md), and the node groups that it
// scales. The result is one NodePool per group.

// autoscaler describes a Cluster Autoscaler.
type autoscaler struct {
	*item                      // its Deployment; nil when only groups are known
	flags  map[string][]string // by name, with all given values
	source *item               // of its groups: the Deployment, or else the first ClusterConfig
}

var scalerImage = regexp.MustCompile(`(^|/)cluster-autoscaler(-[a-z0-9]+)?(:|@|$)`)

// findAutoscaler finds the Deployment, and files of eksctl.
func (m *migration) findAutoscaler() {
	for _, i := range m.items {
		if isCluster(i.root) && m.scaler == nil {
			m.scaler = &autoscaler{flags: map[string][]string{}, source: i}
		}
		if i.kind != "Deployment" {
			continue
		}
		for _, container := range members(at(i.root, "spec", "template", "spec", "containers")) {
			words := append(texts(at(container, "command")), texts(at(container, "args"))...)
			if runsScaler(words) || scalerImage.MatchString(text(at(container, "image"))) {
				m.scaler = &autoscaler{item: i, source: i}
				m.scaler.flags = scalerFlags(words, m.scaler.noteFlag)
			}
		}
	}
}

// runsScaler reports whether a command line starts the program, directly or in a shell.
func runsScaler(words []string) bool {
	if len(words) == 0 {
		return false
	}
	inner := words[:1]
	if shell.MatchString(words[0]) {
		inner = shellWords(strings.Join(words[1:], " "))
	}
	return slices.ContainsFunc(inner, isScaler)
}

func (a *autoscaler) flag(name, otherwise string) string {
	if values := a.flags[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}

// propose creates a NodePool, and if possible an EC2NodeClass, for each node group.
func (m *migration) propose() {
	groups := m.clusterGroups()
	if m.scaler != nil {
		groups = append(groups, m.nodeGroups(groups)...)
		m.bounds(groups)
	}
	existing := map[string]bool{}
	for _, i := range m.items {
		for _, d := range i.documents() {
			existing[d.identity()] = true
		}
	}
	if m.scaler != nil && m.scaler.item != nil {
		m.scaler.describe(groups)
		m.proposeQuota()
	}
	shareClasses(groups)
	ranks := m.ranks(groups)
	var selected selections
	if len(groups) > 0 {
		selected = m.selections()
	}
	for _, g := range groups {
		g.carry(selected)
		g.weight = ranks[g]
		for _, d := range g.documents(m) {
			object := d.identity()
			if existing[object] {
				g.source.note(Advice, g.name, "%s is already in the input; not proposed", object)
				continue
			}
			existing[object] = true
			g.source.after = append(g.source.after, d)
			g.source.Became = append(g.source.Became, object)
		}
		for _, n := range g.remarks {
			g.source.note(n.Outcome, under(g.name, n.Field), "%s", n.Text)
		}
	}
	sizes(groups)
	m.order(groups)
}

// shareClasses makes groups with identical classes use that of the first of them.
func shareClasses(groups []*nodeGroup) {
	sharing := map[*nodeGroup][]string{}
	for n, g := range groups {
		first := slices.IndexFunc(groups[:n], func(other *nodeGroup) bool {
			return g.class != nil && other.class != nil && other.className == other.name && !g.special && !other.special && same(g.class,
				other.class)
		})
		if first >= 0 {
			g.className = groups[first].name
			sharing[groups[first]] = append(sharing[groups[first]], g.name)
		}
	}
	for _, g := range groups {
		if others := sharing[g]; len(others) > 0 {
			g.remark(Advice, "", "shares the EC2NodeClass %s with %s, because their settings are identical", g.className, strings.Join(others, ", "))
		}
	}
}

// documents returns the pool and the class of a group.
func (g *nodeGroup) documents(m *migration) []*document {
	pool := mapping()
	set(pool, scalar("karpenter.sh/v1"), "apiVersion")
	set(pool, scalar("NodePool"), "kind")
	set(pool, scalar(g.name), "metadata", "name")
	for _, name := range slices.Sorted(maps.Keys(g.labels)) {
		set(pool, scalar(g.labels[name]), "spec", "template", "metadata", "labels", name)
	}
	if g.keptAlways() {
		set(pool, scalar("true"), "spec", "template", "metadata", "annotations", karpv1.AnnotationDoNotDisrupt)
	}
	set(pool, scalar("karpenter.k8s.aws"), "spec", "template", "spec", "nodeClassRef", "group")
	set(pool, scalar("EC2NodeClass"), "spec", "template", "spec", "nodeClassRef", "kind")
	set(pool, scalar(cmp.Or(g.className, "default")), "spec", "template", "spec", "nodeClassRef", "name")
	set(pool, sequence(g.allRequirements()...), "spec", "template", "spec", "requirements")
	if len(g.taints) > 0 {
		set(pool, sequence(g.taints...), "spec", "template", "spec", "taints")
	}
	set(pool, scalar(cmp.Or(g.lifetime, "Never")), "spec", "template", "spec", "expireAfter")
	if m.scaler != nil {
		m.scaler.disruption(pool)
	}
	if g.most >= 0 {
		set(pool, integer(int64(g.most)), "spec", "limits", "nodes")
	}
	if g.weight > 0 {
		set(pool, integer(int64(g.weight)), "spec", "weight")
	}
	pool.HeadComment = "# Proposed for the node group " + g.name + "."
	all := []*document{{root: pool, anew: true, proposed: true}}
	if g.class != nil && g.className == g.name {
		class := mapping()
		set(class, scalar("karpenter.k8s.aws/v1"), "apiVersion")
		set(class, scalar("EC2NodeClass"), "kind")
		set(class, scalar(g.className), "metadata", "name")
		set(class, clone(g.class), "spec")
		all = append(all, &document{root: class, anew: true, proposed: true})
	}
	return all
}

func (g *nodeGroup) allRequirements() []*yaml.Node {
	var list []*yaml.Node
	add := func(key string, values ...string) {
		values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
		if len(values) > 0 {
			list = append(list, requirement(key, "In", values...))
		}
	}
	add("kubernetes.io/arch", g.archs...)
	add("kubernetes.io/os", cmp.Or(g.os, "linux"))
	add("karpenter.sh/capacity-type", g.capacityTypes...)
	add("node.kubernetes.io/instance-type", g.types...)
	add("topology.kubernetes.io/zone", g.zones...)
	return append(list, g.requirements...)
}

func requirement(key, operator string, values ...string) *yaml.Node {
	r, list := mapping(), sequence()
	list.Style = yaml.FlowStyle
	for _, value := range values {
		list.Content = append(list.Content, scalar(value))
	}
	set(r, scalar(key), "key")
	set(r, scalar(operator), "operator")
	if len(values) > 0 {
		set(r, list, "values")
	}
	return r
}

// disruption translates the flags about scale-down.
func (a *autoscaler) disruption(pool *yaml.Node) {
	policy, after := "WhenEmptyOrUnderutilized", a.flag("scale-down-unneeded-time", "10m0s")
	threshold, err := strconv.ParseFloat(a.flag("scale-down-utilization-threshold", "0.5"), 64)
	switch d, wrong := time.ParseDuration(after); {
	case a.flag("scale-down-enabled", "true") == "false":
		policy, after = "WhenEmpty", "Never"
	case wrong != nil:
		after = "10m"
	default:
		after = span(d)
	}
	if err == nil && threshold == 0 {
		policy = "WhenEmpty"
	}
	set(pool, scalar(policy), "spec", "disruption", "consolidationPolicy")
	set(pool, scalar(after), "spec", "disruption", "consolidateAfter")
	if at := a.flag("max-scale-down-parallelism", a.flag("max-empty-bulk-delete", "")); at != "" {
		if n, err := strconv.Atoi(at); err == nil && n > 0 {
			budget := mapping()
			quotedNumber := scalar(at)
			set(budget, quotedNumber, "nodes")
			set(pool, sequence(budget), "spec", "disruption", "budgets")
		}
	}
	for _, flag := range []string{"startup-taint", "ignore-taint"} {
		for _, key := range a.flags[flag] {
			taint := mapping()
			set(taint, scalar(key), "key")
			set(taint, scalar("NoSchedule"), "effect")
			list := append(members(at(pool, "spec", "template", "spec", "startupTaints")), taint)
			set(pool, sequence(list...), "spec", "template", "spec", "startupTaints")
		}
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// order adds the order of the migration steps, as advice and as a comment before the first pool.
func (m *migration) order(groups []*nodeGroup) {
	if len(groups) == 0 {
		return
	}
	home := homeOf(groups)
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b *nodeGroup) int {
		return cmp.Or(sign(a == home)-sign(b == home), cmp.Compare(len(b.taints), len(a.taints)), a.smaller(b), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(sorted))
	for n, g := range sorted {
		names[n] = g.name
	}
	where, last, keep := "Fargate, or other nodes that you keep (no group in the input has Linux and no taints)",
		"the largest group", "keep the nodes on which the controller runs"
	if home != nil {
		where, last, keep = "nodes of the group "+home.name+", or Fargate", "the group of the controller",
			"keep as many nodes of "+home.name+" as the controller needs, or move the controller to Fargate"
	}
	scaler, without := "-n kube-system deployment/cluster-autoscaler", ""
	if m.scaler != nil && m.scaler.item != nil {
		without = ", except the Deployment of the Cluster Autoscaler, which is unchanged,"
		scaler = "-n " + cmp.Or(text(at(m.scaler.root, "metadata", "namespace")), "default") + " deployment/" + m.scaler.name
	}
	groups[0].source.steps([]string{
		"install the CRDs and the controller; run the controller on nodes that it does not launch: " + where,
		"apply these manifests" + without + " and wait until the NodePools are ready: kubectl get nodepools",
		"stop the Cluster Autoscaler: kubectl scale " + scaler + " --replicas=0",
		"migrate the groups in this order: " + strings.Join(names, ", ") + " (groups with taints first, because few pods run there; " + last + " last)",
		"for each group: cordon its nodes, drain them one at a time (kubectl drain --ignore-daemonsets --delete-emptydir-data), " +
			"verify that the pods run on new nodes, then set the size of the group to 0",
		keep,
		"delete the Cluster Autoscaler and the empty groups",
	})
}

// homeOf returns the group on whose nodes the controller can run: Linux, without taints, preferably on-demand, and
// the largest of those. It returns nil if there is none.
func homeOf(groups []*nodeGroup) *nodeGroup {
	var home *nodeGroup
	for _, g := range groups {
		if len(g.taints) > 0 || g.os == "windows" {
			continue
		}
		if home == nil || cmp.Or(sign(slices.Contains(home.capacityTypes, "spot"))-sign(slices.Contains(g.capacityTypes, "spot")),
			g.smaller(home)) > 0 {
			home = g
		}
	}
	return home
}

func sign(is bool) int {
	if is {
		return 1
	}
	return 0
}

// smaller compares groups by their number of nodes, as far as it is known, and by their maximum size.
func (g *nodeGroup) smaller(other *nodeGroup) int {
	return cmp.Or(cmp.Compare(max(g.nodes, g.least), max(other.nodes, other.least)), cmp.Compare(g.most, other.most))
}

// steps adds the steps as notes, and as a comment before the first pool that was created from an item.
func (i *item) steps(steps []string) {
	for n, step := range steps {
		i.note(Advice, "step "+itoa(n+1), "%s", step)
	}
	for _, d := range i.after {
		if text(at(d.root, "kind")) == "NodePool" {
			comment := "# Steps of the migration from the Cluster Autoscaler:\n"
			for n, step := range steps {
				comment += "# " + itoa(n+1) + ". " + step + "\n"
			}
			d.root.HeadComment = comment + "#\n" + d.root.HeadComment
			return
		}
	}
}
