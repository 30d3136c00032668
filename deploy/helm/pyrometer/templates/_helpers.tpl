{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "pyrometer.labels" -}}
app.kubernetes.io/name: pyrometer
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "pyrometer.selector" -}}
app.kubernetes.io/name: pyrometer
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pyrometer.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "pyrometer.mode" -}}
{{- with index .Values.config "kubernetes" }}{{ index . "mode" | default "auto" }}{{ else }}auto{{ end -}}
{{- end }}

{{- /* "true" if names of pods come from the API server, always or where no runtime answers. */ -}}
{{- define "pyrometer.watchesPods" -}}
{{- if or (eq (include "pyrometer.mode" .) "api") (eq (include "pyrometer.mode" .) "auto") }}true{{ end -}}
{{- end }}

{{- define "pyrometer.nodeLabels" -}}
{{- with index .Values.config "kubernetes" }}{{ if index . "node_labels" }}true{{ end }}{{ end -}}
{{- end }}

{{- /* "true" if names of pods, or labels of the node, come from the cluster. */ -}}
{{- define "pyrometer.asksCluster" -}}
{{- if or (include "pyrometer.watchesPods" .) (eq (include "pyrometer.mode" .) "kubelet") (include "pyrometer.nodeLabels" .) }}true{{ end -}}
{{- end }}

{{- define "pyrometer.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}
