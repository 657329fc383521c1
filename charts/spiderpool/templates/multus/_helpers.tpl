{{- define "spiderpool.multus.selector" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ .Values.multus.multusCNI.name | quote }}
{{- end }}

{{/* What `spiderpool-agent multus` is told, as JSON; its readiness probe is told the same. */}}
{{- define "spiderpool.multus.arguments" -}}
{{- $multus := .Values.multus.multusCNI -}}
{{- $arguments := list
  (printf "--cni-conf-folder=%s" (clean .Values.global.cniConfHostPath))
  (printf "--cni-bin-folder=%s" (clean .Values.global.cniBinHostPath))
  (printf "--multus-namespace=%s" $multus.namespace)
  (printf "--daemon-set=%s" $multus.name) -}}
{{- with $multus.defaultCniCRName }}{{ $arguments = append $arguments (printf "--cluster-network=%s" (base .)) }}{{ end -}}
{{- if $multus.namespaceIsolation }}
  {{- $arguments = append $arguments "--namespace-isolation" -}}
  {{- with $multus.globalNamespaces }}{{ $arguments = append $arguments (printf "--global-namespaces=%s" (join "," .)) }}{{ end -}}
{{- end -}}
{{- toJson $arguments -}}
{{- end }}

{{/* Of (list object release): whether Helm made the object for this release. */}}
{{- define "spiderpool.multus.isOurs" -}}
{{- $release := index . 1 -}}
{{- $notes := dig "metadata" "annotations" (dict) (index . 0) -}}
{{- if and (eq (get $notes "meta.helm.sh/release-name") $release.Name) (eq (get $notes "meta.helm.sh/release-namespace") $release.Namespace) }}yes{{ end -}}
{{- end }}

{{/* What would end badly is refused before anything changes. Without a cluster to look into (`helm template`) only what the
     values say is looked at. */}}
{{- define "spiderpool.multus.check" -}}
{{- $multus := .Values.multus.multusCNI -}}
{{- $network := include "spiderpool.clusterNetwork" . -}}
{{- if and $network (ne (dir $network) $multus.namespace) }}
  {{- fail (printf "multus.multusCNI.defaultCniCRName must name an attachment of multus.multusCNI.namespace (%s), not %s: Multus looks for its cluster network nowhere else" $multus.namespace $network) }}
{{- end }}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
  {{- range $set := (lookup "apps/v1" "DaemonSet" "" "").items }}
    {{- if not (include "spiderpool.multus.isOurs" (list $set $.Release)) }}
      {{- range $container := $set.spec.template.spec.containers }}
        {{- if regexMatch "(^|/)multus[^/]*$" $container.image }}
          {{- fail (printf "multus.multusCNI.install is true, and the DaemonSet %s/%s is a Multus already (image %s): two of them on a node exclude each other. Remove that one, or set install to false and namespace, defaultCniCRName and namespaceIsolation as it has them" $set.metadata.namespace $set.metadata.name $container.image) }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if $network }}
    {{- $found := false }}
    {{- if .Capabilities.APIVersions.Has "k8s.cni.cncf.io/v1" }}
      {{- $found = lookup "k8s.cni.cncf.io/v1" "NetworkAttachmentDefinition" (dir $network) (base $network) }}
    {{- end }}
    {{- if not $found }}
      {{- fail (printf "multus.multusCNI.defaultCniCRName: there is no NetworkAttachmentDefinition %s, so no pod could start, not even those that would make it. Install without it, make the attachment, then upgrade" $network) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
