package migrate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file migrates values of the chart: files of them, and those inside of objects of Flux and Argo CD and of
// ConfigMaps.

// chartValues are values of the chart, and the item and the field that contain them.
type chartValues struct {
	*item
	field string
	root  *yaml.Node
}

// valuesOfChart migrates the values that a document holds, which is the item's own or is inside of it.
func (m *migration) valuesOfChart(i *item, d *document, field string) {
	found := &Entry{}
	r := repair{document: d, Entry: found}
	m.settings = m.settings.over(r.values())
	checkValues(found, plain(d.root))
	for _, n := range found.Notes {
		i.note(n.Outcome, under(field, n.Field), "%s", n.Text)
	}
	i.anew = i.anew || d.anew
	if i.kind == "ApplicationSet" {
		return // its parameters look like placeholders
	}
	m.charts = append(m.charts, chartValues{i, field, d.root})
}

// textOfValues migrates a text that contains values.
func (m *migration) textOfValues(i *item, node *yaml.Node, field string, certain bool) {
	d := &document{text: text(node)}
	if d.text == "" || d.parse() != nil || d.root == nil {
		return
	}
	root := d.root
	if m.valuesBelow(i, d, field, certain); d.anew {
		node.Value, node.Style = encode(root, false), yaml.LiteralStyle
	}
}

// valuesBelow migrates the values of a document: all of it if that is certain, else those that it is found to contain.
func (m *migration) valuesBelow(i *item, d *document, field string, certain bool) {
	if !certain {
		var key string
		if d.root, key = valuesIn(d.root); d.root == nil {
			return
		}
		field = under(field, key)
	}
	if d.root.Kind == yaml.MappingNode {
		m.valuesOfChart(i, d, field)
	}
}

// embedded migrates values of the chart inside of another object.
func (m *migration) embedded(i *item) {
	switch {
	case i.is("helm.toolkit.fluxcd.io", "HelmRelease"):
		m.helmRelease(i)
	case i.is("argoproj.io", "Application"):
		m.application(i, "spec")
	case i.is("argoproj.io", "ApplicationSet"):
		m.application(i, "spec.template.spec")
	case i.kind == "ConfigMap" && i.apiVersion == "v1":
		for _, name := range fields(at(i.root, "data")) {
			m.textOfValues(i, at(i.root, "data", name), "data["+name+"]", false)
		}
	}
	isMapping := i.root != nil && i.root.Kind == yaml.MappingNode
	if isMapping && i.kind == "" && i.apiVersion == "" && at(i.root, "metadata") == nil && !i.isKustomization() {
		i.note(Advice, "", "is no Kubernetes object, and has no value that only charts of Karpenter have; it is not checked")
	}
	if strings.Contains(i.apiVersion, ".fluxcd.io/") || i.is("argoproj.io", i.kind) {
		eachText(i.root, "", func(field, value string) {
			if foreignChart.MatchString(value) {
				i.note(Advice, field, foreignRepository)
			}
		})
	}
}

const foreignRepository = "is the repository of another program's chart; set it to where you keep the chart of this project"

var foreignChart = regexp.MustCompile(`^(oci://)?public\.ecr\.aws/karpenter(/karpenter)?$|^https://charts\.karpenter\.sh/?$`)

// helmRelease migrates the values of a HelmRelease (https://fluxcd.io/flux/components/helm/helmreleases/).
func (m *migration) helmRelease(i *item) {
	spec := at(i.root, "spec")
	values, from := at(spec, "values"), members(at(spec, "valuesFrom"))
	certain := isChart(text(at(spec, "chart", "spec", "chart"))) || text(at(spec, "chartRef", "name")) == chartName
	if below, _ := valuesIn(values); below == nil && !certain {
		return
	}
	if values != nil {
		m.valuesBelow(i, &document{root: values}, "spec.values", certain)
	}
	for n, source := range from {
		i.note(Advice, "spec.valuesFrom["+itoa(n)+"]", "the values in %s %s are not read from here; migrate them too",
			text(at(source, "kind")), text(at(source, "name")))
	}
}

const chartName = "karpenter"

// isChart reports whether the name of a chart, which may include a part of its repository, is that of Karpenter.
func isChart(name string) bool { return name == chartName || strings.HasSuffix(name, "/"+chartName) }

// application migrates the values of an Application's sources
// (https://argo-cd.readthedocs.io/en/stable/user-guide/helm/).
func (m *migration) application(i *item, path string) {
	spec := at(i.root, strings.Split(path, ".")...)
	sources, names := members(at(spec, "sources")), []string{}
	for n := range sources {
		names = append(names, path+".sources["+itoa(n)+"]")
	}
	if source := at(spec, "source"); source != nil {
		sources, names = append(sources, source), append(names, path+".source")
	}
	for n, source := range sources {
		helm, field := at(source, "helm"), names[n]+".helm"
		chart, repository := text(at(source, "chart")), text(at(source, "repoURL"))
		certain := isChart(chart) || chart == "" && foreignChart.MatchString(repository)
		if certain && !foreignChart.MatchString(repository) && foreignChart.MatchString(repository+"/"+chart) {
			i.note(Advice, names[n]+".repoURL", foreignRepository)
		}
		if values := at(helm, "valuesObject"); values != nil {
			m.valuesBelow(i, &document{root: values}, field+".valuesObject", certain)
		}
		m.textOfValues(i, at(helm, "values"), field+".values", certain)
		if !certain {
			continue
		}
		for k, file := range members(at(helm, "valueFiles")) {
			i.note(Advice, field+".valueFiles["+itoa(k)+"]", "the values in %s are not read from here; migrate them too", text(file))
		}
		for k, parameter := range members(at(helm, "parameters")) {
			i.parameter(parameter, field+".parameters["+itoa(k)+"]")
		}
	}
}

// parameter renames a parameter of Helm, which is one value, or notes why it has no meaning.
func (i *item) parameter(parameter *yaml.Node, field string) {
	name := at(parameter, "name")
	path := strings.ReplaceAll(text(name), `\.`, ".")
	for _, row := range renamedValues {
		if row.old == path {
			i.note(Changed, field, "%s is renamed to %s", path, row.today)
			name.Value, i.anew = row.today, true
			return
		}
	}
	for _, row := range slices.Concat(goneValues, movedValues) {
		if row.old == path || strings.HasPrefix(path, row.old+".") {
			i.note(Impossible, field, "%s has no effect: %s; remove it", path, row.why)
			return
		}
	}
	root := mapping()
	set(root, scalar(text(at(parameter, "value"))), strings.Split(path, ".")...)
	found := &Entry{}
	checkNames(found, plain(root))
	for _, n := range found.Notes {
		i.note(n.Outcome, field, "%s %s", n.Field, n.Text)
	}
}
