# Web server and record keeper: Django, no torch, no private key.
FROM python:3.11-slim
WORKDIR /opt/mkb
COPY pyproject.toml README.md LICENSE .ci/constraints.txt ./
COPY problems problems
COPY runner runner
COPY leaderboard leaderboard
COPY mkb_site mkb_site
COPY templates templates
COPY static static
COPY manage.py manage.py
RUN pip install --no-cache-dir --constraint constraints.txt --editable .
RUN MKB_DATA=/opt/mkb/build python manage.py collectstatic --no-input --settings mkb_site.settings.test
USER nobody
ENV DJANGO_SETTINGS_MODULE=mkb_site.settings.production MKB_DATA=/opt/mkb/build
CMD ["gunicorn", "mkb_site.wsgi", "--bind", "0.0.0.0:8000", "--threads", "8"]
